"""Values and processes in the output of nvidia-smi. Any text that is not exactly a known value raises NotKnownError.

Source: https://docs.nvidia.com/deploy/nvidia-smi/ for fields and units. nvidia-smi shows ``N/A`` for what a GPU
does not support, and NVML's error text for any other error (``Unknown Error``, ``GPU is lost``).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kdoctor.facts import GpuProcess
from kdoctor_recordings.formats.part import CUT

MIB = 1024**2

_NOT_KNOWN = re.compile(
    r"\[?(?:n/?a|not supported|not available|not found|not active|requested functionality.*|unknown.*|.*\berror\b.*"
    r"|err!|deprecated.*|insufficient.*|.*gpu is lost.*|.*reset required.*|function not found|none|uninitialized)\]?",
    re.IGNORECASE,
)
"""What a free-text field shows when it has no value."""
WITHOUT_VALUE = frozenset({"", "n/a", "[n/a]", "not supported", "[not supported]", "unknown error", "[unknown error]"})
"""What an entry shows, in lower case, that was not read."""
_DEPRECATED = re.compile(r"\s*\[Deprecated;.*$", re.IGNORECASE)
"""What driver 610 adds to renamed fields: ``610.57.04 [Deprecated; will be removed in CUDA 14.0. ...]``."""


class NotKnownError(Exception):
    """The output names the field and gives no value. The message is what it shows instead."""


Read = Callable[[str], Any]
"""Converts text to a value; raises NotKnownError."""


Fields = Mapping[str, tuple[Read, tuple[str, ...]]]
"""Field of a fact group to how it is read, and the names that it has in the output."""


def read_all(fields: Fields, texts: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The values of the fields that are in ``texts``, and the errors of those without a value.

    Of several names of a field, the first one in ``texts`` counts.
    """
    values: dict[str, Any] = {}
    errors: dict[str, str] = {}
    for field, (read, names) in fields.items():
        text = next((texts[name] for name in names if name in texts), None)
        if text is None:
            continue
        try:
            values[field] = read(text)
        except NotKnownError as error:
            errors[field] = str(error)
    return values, errors


def read_or_none(read: Read, text: str) -> Any:
    """The value, or None if the text has none."""
    try:
        return read(text)
    except NotKnownError:
        return None


def not_known(text: str) -> NotKnownError:
    """The error for text that has no value."""
    return NotKnownError(" ".join(text.split())[:80] or "empty")


def pattern(words: str, make: Callable[[str], Any]) -> Read:
    """What converts a text by its first group, if all of it matches."""
    compiled = re.compile(words, re.IGNORECASE)

    def read(text: str) -> Any:
        found = compiled.fullmatch(text.strip())
        if not found:
            raise not_known(text)
        return make(found[1])

    return read


def mapped(values: Mapping[str, Any]) -> Read:
    """What converts one of these words, in any case."""

    def read(text: str) -> Any:
        word = "-".join(re.split(r"[\s_-]+", text.strip().lower()))
        if word not in values:
            raise not_known(text)
        return values[word]

    return read


def _one_of(words: str, others: Mapping[str, str] | None = None) -> Read:
    return mapped({**{word: word for word in words.split()}, **(others or {})})


def free_text(text: str) -> str:
    """A name."""
    name = " ".join(text.split())
    if not name or _NOT_KNOWN.fullmatch(name):
        raise not_known(text)
    if name.startswith("..") or name.endswith("..."):
        # Tables shorten long names, and a shortened name may be another model's.
        raise not_known(f"not in the shortened name {name}")
    return name


def version(text: str) -> str:
    """A version, without the deprecation notice of driver 610."""
    number = _DEPRECATED.sub("", text).strip()
    if not re.fullmatch(r"\d+(?:\.\d+)+", number):
        raise not_known(text)
    return number


def offset(text: str) -> int:
    """A T.Limit threshold: never above zero."""
    degrees = int(pattern(r"(-?\d+) C", int)(text))
    if degrees > 0:
        raise NotKnownError(f"not an offset: {text}")
    return degrees


def fabric_status(text: str) -> str:
    """``success``, or the error text."""
    status = " ".join(text.split())
    if not status or status.upper() == "N/A":
        raise not_known(text)
    return "success" if status.lower() == "success" else status


count = pattern(r"(\d{1,18})", int)
mebibytes = pattern(
    r"(\d{1,12}(?:\.\d{1,3})?\s?[MG])i?B",
    lambda size: round(float(size[:-1]) * MIB * (1 if size[-1] in "Mm" else 1024)),
)
watts = pattern(r"(\d+(?:\.\d+)?)\s?W", float)
megahertz = pattern(r"(\d+) MHz", int)
percent = pattern(r"(\d+)\s?%", int)
degrees = pattern(r"(-?\d+)\s?C", int)
threshold = pattern(r"([1-9]\d*) C", int)
generation = pattern(r"([1-9])", int)
width = pattern(r"([1-9]\d?)x", int)
performance_state = pattern(r"P(\d+)", int)
uuid = pattern(r"(GPU-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})", str)
enabled = mapped({"enabled": True, "disabled": False, "on": True, "off": False})
active = mapped({"active": True, "not-active": False})
yes = mapped({"yes": True, "no": False})
compute_mode = _one_of(
    "default prohibited exclusive-thread exclusive-process",
    {"e.-thread": "exclusive-thread", "e.-process": "exclusive-process"},
)
virtualization_mode = _one_of("none vgpu host-vgpu host-vsga", {"pass-through": "passthrough"})
addressing_mode = _one_of("none hmm ats")
fabric_state = _one_of("not-supported not-started in-progress completed")
recovery_action = _one_of(
    "none reset reboot drain-p2p drain-and-reset recover-imex-domain bus-reset system-reboot",
    {"gpu-reset": "reset", "node-reboot": "reboot"},
)


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
        pid = count(process.get("process id", ""))
    except NotKnownError as error:
        raise NotKnownError(f"a process has no id: {error}") from error
    return GpuProcess(
        pid=pid,
        used_memory_bytes=read_or_none(mebibytes, process.get("used gpu memory", "")),
        name=read_or_none(free_text, process.get("name", "")),
    )
