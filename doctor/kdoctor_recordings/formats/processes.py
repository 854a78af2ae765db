"""The processes that nvidia-smi lists."""

from collections.abc import Mapping, Sequence

from kdoctor.facts import GpuProcess
from kdoctor_recordings.formats import values
from kdoctor_recordings.formats.part import CUT
from kdoctor_recordings.formats.values import NotKnownError, read_or_none


def read_processes(
    heading: str, listed: Sequence[Mapping[str, str]], *, more: bool, graphics: bool = False
) -> tuple[GpuProcess, ...]:
    """The compute processes of a GPU, or those with a graphics context.

    Args:
        heading: the text next to the heading: ``None`` if the list is empty.
        listed: names and texts of each process, as in ``nvidia-smi -q``.
        more: whether the file ends here, so that further processes may be missing.
        graphics: whether to list the processes with a graphics context.

    Raises:
        NotKnownError: the processes are not known.
    """
    if not listed:
        if heading.strip().lower() == "none":
            return ()
        raise NotKnownError(heading or (CUT if more else "empty"))
    complete = listed[:-1] if more and "used gpu memory" not in listed[-1] else listed
    kinds = [process.get("type", "").strip().upper() for process in complete]
    wanted = is_graphics if graphics else is_compute
    found = [_process(process) for process, kind in zip(complete, kinds, strict=True) if wanted(kind)]
    if more and not found:
        # An empty list would mean that the GPU is free.
        raise NotKnownError(CUT)
    return tuple(found)


def is_compute(kind: str) -> bool:
    """Whether a type as nvidia-smi prints it (``C``, ``M+C``, ``G``, ``C+G``) is a compute process.

    Applications of a desktop are ``C+G`` on Windows. Without a type, the process counts.
    """
    letters = kind.strip().upper().split("+")
    return letters == [""] or ("C" in letters and "G" not in letters)


def is_graphics(kind: str) -> bool:
    """Whether a process of this type has a graphics context."""
    return "G" in kind.strip().upper().split("+")


def _process(process: Mapping[str, str]) -> GpuProcess:
    try:
        pid = values.count(process.get("process id", ""))
    except NotKnownError as error:
        raise NotKnownError(f"a process has no id: {error}") from error
    return GpuProcess(
        pid=pid,
        used_memory_bytes=read_or_none(values.mebibytes, process.get("used gpu memory", "")),
        name=read_or_none(values.free_text, process.get("name", "")),
    )
