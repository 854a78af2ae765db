"""Runs kdoctor while something around it is broken, and looks for what it leaves behind."""

import os
import resource
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from helpers.command import KDOCTOR, environ
from helpers.faults.private_memory import PrivateMemory, private_memory

MARK = "KDOCTOR_FAULT"
"""Variable that marks the processes of one run, those that left its session included."""
LONGEST_S = 200.0
_ANNOUNCED = (sys.executable, "-c", "import os; from kdoctor.__main__ import main; os.mknod('started'); main()")
"""The file is made in one system call: Python code that follows, before ``main``, would be interrupted, too."""

QUICK = ("check", "--checklist", "cpu-smoke", "--no-smoke")


@dataclass(frozen=True, kw_only=True)
class Fault:
    """What is broken, and how kdoctor must end."""

    exits: tuple[int, ...]
    """The allowed exit codes; negative numbers are signals."""
    says: str = ""
    """A pattern that stdout or stderr must match."""
    arguments: Sequence[str] = QUICK
    variables: Mapping[str, str | None] = field(default_factory=dict)
    """Changes of the environment; None removes a variable. ``{folder}`` is the folder of the test."""
    closed: tuple[int, ...] = ()
    """Standard streams that are closed."""
    stdout: str | None = None
    stderr: str | None = None
    """Files for the streams instead of pipes."""
    limits: Mapping[int, int] = field(default_factory=dict)
    prepare: Callable[[Path], None] | None = None
    """Makes files in the folder of the test."""
    meanwhile: Callable[[psutil.Process, Path], None] | None = None
    """Acts on the running process."""
    announce: bool = False
    """Whether a file ``started`` appears when Python has started kdoctor. Before that, Ctrl-C ends Python itself."""
    slow: bool = False
    """Whether only ``make faults`` runs it."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How kdoctor ended, and what it left."""

    exit_code: int
    stdout: str
    stderr: str
    files: tuple[str, ...]
    """In the temporary folder."""
    shared: tuple[str, ...]
    """Files in its /dev/shm."""
    processes: tuple[str, ...]
    """Still running."""

    @property
    def left(self) -> tuple[str, ...]:
        """Everything that should not be there."""
        return self.files + self.shared + self.processes


def run(fault: Fault, folder: Path) -> Outcome:
    """Run kdoctor under the fault."""
    temporary = folder / "tmp"
    temporary.mkdir(exist_ok=True)
    if fault.prepare:
        fault.prepare(folder)
    mark = uuid.uuid4().hex
    with private_memory(folder) as memory:
        return _run(fault, folder, mark, memory)


def _run(fault: Fault, folder: Path, mark: str, memory: PrivateMemory | None) -> Outcome:
    temporary = folder / "tmp"
    with subprocess.Popen(
        [
            *(_ANNOUNCED if fault.announce else KDOCTOR),
            *(item.replace("{folder}", str(folder)) for item in fault.arguments),
        ],
        stdin=subprocess.DEVNULL,
        stdout=_stream(fault.stdout, folder),
        stderr=_stream(fault.stderr, folder),
        env={**_environ(fault, folder), MARK: mark},
        preexec_fn=lambda: _break(fault, memory),  # noqa: PLW1509 - this process has no other threads that hold locks
        cwd=folder,
    ) as process:
        if fault.meanwhile:
            fault.meanwhile(psutil.Process(process.pid), folder)
        out, err = process.communicate(timeout=LONGEST_S)
    return Outcome(
        exit_code=process.returncode,
        stdout=(out or b"").decode("utf-8", "replace"),
        stderr=(err or b"").decode("utf-8", "replace"),
        files=tuple(sorted(item.name for item in temporary.iterdir())),
        shared=tuple(memory.files()) if memory else (),
        processes=marked(mark),
    )


def wait_for(path: Path) -> None:
    """Return when the file exists."""
    deadline = time.monotonic() + LONGEST_S / 2
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} did not appear"
        time.sleep(0.02)


def wait_until_ended(process: psutil.Process) -> None:
    """Return when the process has ended; its exit code is read later."""
    while process.status() != psutil.STATUS_ZOMBIE:
        time.sleep(0.02)


def _environ(fault: Fault, folder: Path) -> dict[str, str]:
    found = {**environ(), "KDOCTOR_HISTORY": str(folder / "history.db")}
    found.pop("KDOCTOR_NO_HISTORY")
    found["TMPDIR"] = str(folder / "tmp")
    for name, value in fault.variables.items():
        found.pop(name, None)
        if value is not None:
            found[name] = value.replace("{folder}", str(folder))
    return found


def _break(fault: Fault, memory: PrivateMemory | None) -> None:
    if memory:
        memory.enter()
    # Tests that run in the background ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for kind, most in fault.limits.items():
        resource.setrlimit(kind, (most, most))
    for number in fault.closed:
        os.close(number)


def _stream(path: str | None, folder: Path) -> int:
    if path is None:
        return subprocess.PIPE
    return os.open(path.replace("{folder}", str(folder)), os.O_WRONLY | os.O_CREAT, 0o600)


def marked(mark: str) -> tuple[str, ...]:
    """The processes with the mark that do not end within two seconds."""
    found = [process for process in psutil.process_iter() if _has(process, mark)]
    _, alive = psutil.wait_procs(found, timeout=2)
    return tuple(f"{process.pid} {process.name()}" for process in alive if process.status() != psutil.STATUS_ZOMBIE)


def _has(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get(MARK) == mark
    except (psutil.Error, OSError):
        return False
