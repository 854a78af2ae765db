"""The processes that nvidia-smi lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kdoctor.facts import GpuProcess
from kdoctor.snapshot.imports import values
from kdoctor.snapshot.imports.part import CUT
from kdoctor.snapshot.imports.values import NotKnownError


def read_processes(heading: str, listed: Sequence[Mapping[str, str]], *, more: bool) -> tuple[GpuProcess, ...] | str:
    """The compute processes; or why they are not known.

    Args:
        heading: what stands beside the heading: ``None`` where there are none.
        listed: names and texts of each, in the words of ``nvidia-smi -q``.
        more: whether the file ends here, so that others may have followed.
    """
    if not listed:
        if heading.strip().lower() == "none":
            return ()
        return heading or (CUT if more else "empty")
    found: list[GpuProcess] = []
    complete = listed[:-1] if more and "used gpu memory" not in listed[-1] else listed
    for process in complete:
        kind = process.get("type", "").strip().upper()
        try:
            if not kind or "C" in kind:
                found.append(_process(process))
        except NotKnownError as error:
            return f"a process is not told: {error}"
    # An empty list would say that the GPU is free; of a file that ends here that is not known.
    return tuple(found) if found or not more else CUT


def _process(process: Mapping[str, str]) -> GpuProcess:
    try:
        used = values.mebibytes(process.get("used gpu memory", ""))
    except NotKnownError:
        used = None
    try:
        name = values.free_text(process.get("name", ""))
    except NotKnownError:
        name = None
    return GpuProcess(pid=values.count(process.get("process id", "")), used_memory_bytes=used, name=name)
