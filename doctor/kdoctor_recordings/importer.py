"""Converts the output of other tools to facts: dumps of ``nvidia-smi``, ``lspci`` and kernel logs.

The format is recognized by a file's content, never by its name. What a dump does not contain is unknown, with the
reason. A group of facts that no dump mentions is absent.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from kdoctor.errors import UsageError
from kdoctor.facts import FactGroup
from kdoctor.records import record
from kdoctor.text.lists import counted, some
from kdoctor_recordings.formats import (
    dcgm_table,
    diagnostics,
    folders,
    kernel_log,
    lsmod,
    lspci,
    messages,
    proc_version,
    smi_csv,
    smi_failure,
    smi_nvlink,
    smi_query,
    smi_table,
    smi_topo,
    smi_xml,
)
from kdoctor_recordings.formats.join import first_machine, join
from kdoctor_recordings.formats.part import Kind, Part, Section
from kdoctor_recordings.formats.split import UNDERSTOOD, is_log_alone, read_sections
from kdoctor_recordings.formats.unread import unread_lines

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
    "nvidia-smi --query-gpu": smi_csv.parse,
    "kernel log": kernel_log.parse,
    "dcgmi diag": diagnostics.parse_dcgm,
    "dcgmi diag's table": dcgm_table.parse,
    "/proc/driver/nvidia/version": proc_version.parse,
    "lsmod": lsmod.parse,
    "this text": messages.parse,
}


@record
class Imported:
    """The facts of all dumps together."""

    facts: Mapping[type[FactGroup], FactGroup]
    """A group that no dump mentions is absent."""
    notes: tuple[str, ...]
    """Notes for the user: what is missing or cut off."""


def import_files(paths: Sequence[Path]) -> Imported:
    """The facts of one machine from its dumps.

    Raises:
        UsageError: a file cannot be read or is not supported, or the files are not from the same machine.
    """
    parts = [part for path in paths for part in _parts(path)]
    facts, notes = join(parts)
    return Imported(facts=facts, notes=notes)


def _parts(path: Path) -> list[Part]:
    """The dumps of a file, a folder or an archive.

    Raises:
        UsageError: it has none.
    """
    if not folders.is_collection(path):
        return _of_file(path)
    parts: list[Part] = []
    unread: list[str] = []
    with folders.opened(path) as folder:
        for file in folders.dumps(folder):
            try:
                parts += _of_file(file)
            except UsageError:
                unread.append(file.relative_to(folder).as_posix())
    if not parts:
        raise UsageError(f"{path}: no file in it is a known format", hint=f"Supported formats: {UNDERSTOOD}.")
    if unread:
        note = f"{path.name}: {counted(len(unread), 'file')} not understood: {some(unread, 5)}"
        parts[0] = replace(parts[0], notes=(*parts[0].notes, note))
    return parts


def _of_file(path: Path) -> list[Part]:
    log = kernel_log.read_long(path, is_log_alone)
    if log:
        return [log]
    sections = read_sections(path)
    return first_machine([replace(_PARSERS[one.kind](one), unread=unread_lines(one)) for one in sections])
