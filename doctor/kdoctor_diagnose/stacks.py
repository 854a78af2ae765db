"""Where each process was when its stacks were dumped: the main threads in dumps of faulthandler and py-spy."""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from kdoctor.text.lists import grouped
from kdoctor_diagnose.line import Line
from kdoctor_diagnose.model import Activity, StackGroup
from kdoctor_diagnose.tracebacks import SEPARATOR, is_library

MARKS = (b"(most recent call first)", b'"MainThread"')
"""What every dump has, of faulthandler and of py-spy."""
MOST_LINES = 200_000
"""Lines of all dumps that are read."""
_PROCESS = re.compile(r"Process (?P<pid>\d{1,9}): \S")
_THREAD = re.compile(
    r"(?:Current )?[Tt]hread 0x\w{1,16}.{0,80}\(most recent call first\):"
    r"|Thread \d{1,9} \([\w+]{1,20}\)(?:: (?P<name>.{1,80}))?"
)
_FRAME = re.compile(
    r'\s+(?:File "(?P<file>[^"]{1,300})", line (?P<line>\d{1,7}) in (?P<function>\S{1,200})'
    r"|(?P<name>[^\s(]{1,200}) \((?P<place>[^():]{1,300})(?::(?P<number>\d{1,7}))?\))$"
)
_RANKED = re.compile(r"(?i)(?:rank|worker|task|proc(?:ess)?)[._-]?(?P<rank>\d{1,6})(?!\d)")
"""The rank in the name of a log."""
_MAIN = frozenset({"<module>", "_run_module_as_main"})
"""The outermost functions of the main thread."""
_WORDS: dict[Activity, str] = {
    "collective": r"all_?reduce|all_?gather|reduce_?scatter|broadcast|barrier|sync_global|psum|all_?to_?all|collective"
    r"|horovod",
    "saving": r"checkpoint|orbax|save|serializ|restore|h5py",
    "data": r"data_?loader|dataset|data_adapter|iterator|get_next|__getitem__|prefetch|enqueuer|tensorflow/python/data"
    r"|imread|pil/|input_pipeline",
    "compiling": r"compile|lower|make_jaxpr|trace_to",
    "start": r"distributed/.{0,40}initialize|initialize_system|init_process_group|importlib|import_module",
    "step": r"quick_execute|block_until_ready|device_get|__array__|train_step|train_function|one_step|multi_step"
    r"|apply_gradients|pjit|pxla|call_wrap",
}
_ACTIVITIES = {activity: re.compile(words) for activity, words in _WORDS.items()}
"""What a process does, by the innermost frame that says it, in the order in which they are asked."""


@dataclass(frozen=True)
class Frame:
    """A function in a stack."""

    function: str
    file: str
    line: str

    @property
    def place(self) -> str:
        """``loader.py:44``."""
        return SEPARATOR.split(self.file)[-1] + (f":{self.line}" if self.line else "")


class _Process(NamedTuple):
    log: str
    rank: str
    pid: str


class Stacks:
    """The main threads of the processes whose stacks are in logs. Of several dumps of a process, the last counts."""

    def __init__(self) -> None:
        self._pids: dict[tuple[str, str], str] = {}
        self._open: dict[tuple[str, str], tuple[bool, list[Frame]]] = {}
        """Of the threads that are read, whether they are the main ones, and their frames."""
        self._main: dict[_Process, tuple[Frame, ...]] = {}
        self._lines = 0

    @property
    def is_open(self) -> bool:
        """Whether the last line that was read is in a stack."""
        return bool(self._open)

    def read(self, log: str, lines: Iterable[Line]) -> None:
        """Read lines of a log, those of a rank in order."""
        for line in lines:
            self._lines += 1
            if self._lines > MOST_LINES:
                return
            self._read((log, line.rank or ""), line.text)

    def end(self) -> None:
        """End the stacks that the last lines of a log belong to."""
        for source in list(self._open):
            self._close(source)

    def _read(self, source: tuple[str, str], text: str) -> None:
        if found := _PROCESS.match(text):
            self._close(source)
            self._pids[source] = found["pid"]
        elif found := _THREAD.match(text):
            self._close(source)
            self._open[source] = ("MainThread" in (found["name"] or ""), [])
        elif source in self._open:
            frame = _FRAME.match(text)
            if frame:
                dumped, spied = frame.groups("")[:3], frame.groups("")[3:]
                self._open[source][1].append(Frame(dumped[2] or spied[0], dumped[0] or spied[1], dumped[1] or spied[2]))
            elif not text.startswith(" "):  # py-spy can write the local variables below a frame
                self._close(source)

    def _close(self, source: tuple[str, str]) -> None:
        is_main, frames = self._open.pop(source, (False, []))
        if frames and (is_main or frames[-1].function in _MAIN):
            self._main[_Process(*source, self._pids.get(source, ""))] = tuple(frames)

    def groups(self) -> list[StackGroup]:
        """The processes by what they do, the largest group first."""
        names = _names(self._main)
        alike = grouped((_described(frames), names[process]) for process, frames in sorted(self._main.items()))
        found = [
            StackGroup(processes=processes, activity=activity, frame=frame, program=program)
            for (activity, frame, program), processes in alike.items()
        ]
        return sorted(found, key=lambda group: -len(group.processes))


def _names(processes: Iterable[_Process]) -> dict[_Process, str]:
    """The rank of each process, or its number where a log has several, or its log."""
    names: dict[_Process, str] = {}
    for log, alike in grouped((process.log, process) for process in processes).items():
        for process in alike:
            found = _RANKED.search(SEPARATOR.split(log)[-1])
            alone = str(int(found["rank"])) if found else log
            names[process] = process.rank or (f"pid {process.pid}" if process.pid and len(alike) > 1 else alone)
    return names


def _described(frames: tuple[Frame, ...]) -> tuple[Activity, str, str | None]:
    """What a stack is about, the frame that says it, and the innermost place in the program's own files."""
    own = next((frame for frame in frames if not _is_library(frame.file)), None)
    activity, frame = next(_said(frames), ("unknown", frames[0]))
    name = f"{frame.function} ({frame.place})"
    return activity, name, own.place if own and own is not frame else None


def _said(frames: tuple[Frame, ...]) -> Iterator[tuple[Activity, Frame]]:
    for frame in frames:
        text = f"{frame.file} {frame.function}".lower()
        for activity, pattern in _ACTIVITIES.items():
            if pattern.search(text):
                yield activity, frame


def _is_library(file: str) -> bool:
    """Whether a file belongs to Python or to a library. py-spy shortens paths to those below sys.path."""
    first = SEPARATOR.split(file)[0].removesuffix(".py")
    return first in sys.stdlib_module_names or bool(is_library(f"/{file}"))
