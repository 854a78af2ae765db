"""Makes facts of what people send each other: dumps of ``nvidia-smi``, ``lspci`` and kernel logs.

Each form is recognised by what stands in the file, never by the file's name. What a dump does not say stays unknown,
with the reason; a group of facts that no dump speaks of is absent. Nothing here has an opinion: checks judge.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kdoctor.facts import FactGroup
from kdoctor.snapshot.imports import (
    kernel_log,
    lspci,
    lstopo,
    proc_version,
    smi_failure,
    smi_nvlink,
    smi_query,
    smi_table,
    smi_topo,
    smi_xml,
)
from kdoctor.snapshot.imports.join import join
from kdoctor.snapshot.imports.part import Kind, Part, Section
from kdoctor.snapshot.imports.split import UNDERSTOOD, read_sections

__all__ = ["UNDERSTOOD", "Imported", "import_files"]

_PARSERS: dict[Kind, Callable[[Section], Part]] = {
    "nvidia-smi -q": smi_query.parse,
    "nvidia-smi -q -x": smi_xml.parse,
    "nvidia-smi": smi_table.parse,
    "nvidia-smi topo -m": smi_topo.parse_levels,
    "nvidia-smi topo -p2p": smi_topo.parse_access,
    "nvidia-smi nvlink -s": smi_nvlink.parse,
    "nvidia-smi's failure": smi_failure.parse,
    "lspci -vvv": lspci.parse,
    "lstopo": lstopo.parse,
    "kernel log": kernel_log.parse,
    "/proc/driver/nvidia/version": proc_version.parse,
}


@dataclass(frozen=True, kw_only=True)
class Imported:
    """What the dumps say together."""

    facts: Mapping[type[FactGroup], FactGroup]
    """A group that is not here is one that no dump speaks of."""
    notes: tuple[str, ...]
    """What the user should know: what is missing or cut."""


def import_files(paths: Sequence[Path]) -> Imported:
    """The facts of one machine from files that it wrote.

    Raises:
        UsageError: a file cannot be read, is no dump that is understood, or they are not of one machine.
    """
    parts = [_PARSERS[section.kind](section) for path in paths for section in read_sections(path)]
    facts, notes = join(parts)
    return Imported(facts=facts, notes=notes)
