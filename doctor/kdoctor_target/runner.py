"""Runs the smoke scenarios: imports TensorFlow once, then gives every case a process of its own.

A failed collective poisons later strategies of its process, and a crash or a hang ends it: hence one
process for each case. Forking after the import saves the import of every case but one. Where forking
is impossible, or unsafe because a GPU is already in use by this process, each case gets a fresh interpreter.

Every case writes to three files of its own: events (JSON lines), error output, and Python stacks. Files
outlive a process that crashes, never fill up as a pipe does, and are the same on every system.
"""

from __future__ import annotations

import ctypes
import faulthandler
import gc
import importlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
import warnings
from pathlib import Path
from types import ModuleType
from typing import IO, Any, Callable, Dict, List, Optional

from kdoctor_target.case import Case, NotHere
from kdoctor_target.channel import Channel

Settings = Dict[str, Any]
Facts = Dict[str, Any]

POLL_S = 0.01
MOST_PARALLEL = 4
TAIL_LINES = 40
STACKS_LINES = 150
TAIL_BYTES = 16 * 1024
MESSAGE_CHARACTERS = 2000
MOST_COMPLAINTS = 10

# NCCL's warnings, and errors and fatal ones of TensorFlow's log, which begin "2026-11-20 10:00:00.0: E tensorflow/...".
_COMPLAINT = re.compile(
    r"NCCL (?:WARN|ERROR)|nccl(?:Unhandled|System|Internal|Remote)\w*Error"
    r"|^\d{4}-\d\d-\d\d [\d:.]+: [EF] |^[EF]\d{4} [\d:.]+ "
)

_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def main(settings: Settings) -> None:
    """Run the cases of the settings (see ``kdoctor.smoke.run``) and send what happens, as it happens."""
    channel = Channel()
    folder = Path(settings["folder"])
    own_case = settings.get("own_case")
    if own_case is not None:
        _Files(folder, own_case).take_over()
    _end_with_the_parent(expected_parent=None)
    _prepare_environment(settings["devices_kind"])
    if own_case is not None:
        _arm_stacks(_Files(folder, own_case).stacks, own_case["deadline_s"])
        _import_and_run(own_case, settings, folder)
    else:
        threading.Thread(target=_die_when_orphaned, daemon=True).start()
        if _preload(settings, folder, channel):
            _Runner(settings, folder, channel).run()


def _prepare_environment(devices_kind: str) -> None:
    """Set what TensorFlow reads when it is imported, leaving the user's own choices alone."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")
    # Without it TensorFlow takes all memory of every GPU, and the next case finds none.
    os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
    if devices_kind == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = "-1"
    else:
        os.environ.setdefault("NCCL_DEBUG", "WARN")  # silent while all is well; a hang without it says nothing


def _preload(settings: Settings, folder: Path, channel: Channel) -> bool:
    """Import what all cases need and say its versions; whether that went well.

    A hang ends this process at the deadline, with its stacks in ``runner.stacks``.
    """
    stacks = (folder / "runner.stacks").open("w")
    faulthandler.enable(stacks)
    faulthandler.dump_traceback_later(settings["import_deadline_s"], exit=True, file=stacks)
    try:
        facts = _import_all(settings["preload"])
    except BaseException as error:
        traceback.print_exc()
        channel.send({"event": "failed", **_describe_error(error)})
        return False
    finally:
        faulthandler.cancel_dump_traceback_later()
    channel.send({"event": "imported", **facts})
    return True


def _import_all(names: List[str]) -> Facts:
    facts: Facts = {}
    for name in names:
        started = time.perf_counter()
        module = importlib.import_module(name)
        if name == "tensorflow":
            facts["import_s"] = time.perf_counter() - started
            facts["tensorflow"] = str(module.__version__)
            # TensorFlow loads Keras when it is first asked for: do it once, here.
            keras = sys.modules[module.keras.Model.__module__.partition(".")[0]]
            facts["keras"] = "{} {}".format(keras.__name__, keras.__version__)
    return facts


class _Files:
    """The files of one case."""

    def __init__(self, folder: Path, job: Facts) -> None:
        self.stem = folder / job["stem"]
        self.events, self.errors, self.stacks = (
            folder / "{}.{}".format(job["stem"], kind) for kind in ("events", "stderr", "stacks")
        )
        for path in (self.events, self.errors, self.stacks):
            path.touch()

    def take_over(self) -> None:
        """Make this process write its output here, in Python and in C, and read nothing."""
        sys.stdout.flush()
        sys.stderr.flush()
        errors = os.open(str(self.errors), os.O_WRONLY | os.O_APPEND)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(errors, 1)
        os.dup2(errors, 2)


class _Process:
    """A case's process, forked or fresh."""

    def __init__(self, pid: int, popen: "Optional[subprocess.Popen[bytes]]" = None) -> None:
        self.pid = pid
        self._popen = popen
        self.peak_memory_bytes: Optional[int] = None

    def poll(self) -> Optional[int]:
        """The exit status (negative: the number of the signal), or None while it runs."""
        if self._popen:
            return self._popen.poll()
        pid, status, usage = os.wait4(self.pid, os.WNOHANG)
        if pid == 0:
            return None
        self.peak_memory_bytes = _peak_memory(usage)
        return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)

    def kill(self) -> None:
        if self._popen:
            self._popen.kill()
        else:
            os.kill(self.pid, signal.SIGKILL)


class _RunningCase:
    """One case from its start to its facts."""

    def __init__(self, job: Facts, process: _Process, files: _Files, deadline_s: float) -> None:
        self.job = job
        self._process = process
        self._files = files
        self._started = time.monotonic()
        self._deadline_s = deadline_s
        self._killed = False
        self._events_read = 0
        self._facts: Facts = {}
        self._end: Optional[Facts] = None

    def advance(self, on_phase: Callable[[Facts, str], None]) -> Optional[Facts]:
        """Read what is new; the case's facts once its process has ended."""
        status = self._process.poll()
        self._read_events(on_phase)
        if status is not None:
            return self._conclude(status)
        if not self._killed and time.monotonic() - self._started > self._deadline_s:
            self._killed = True
            self._process.kill()
        return None

    def _read_events(self, on_phase: Callable[[Facts, str], None]) -> None:
        with self._files.events.open("rb") as file:
            file.seek(self._events_read)
            *lines, _incomplete = file.read().split(b"\n")
        for line in lines:
            self._events_read += len(line) + 1
            event = json.loads(line.decode("utf-8"))
            self._facts.update(event.get("facts", {}))
            if "phase" in event:
                self._facts["phase"] = event["phase"]
                on_phase(self.job, event["phase"])
            self._end = event.get("end", self._end)

    def _conclude(self, status: int) -> Facts:
        facts = dict(self._facts, seconds=time.monotonic() - self._started)
        if self._process.peak_memory_bytes is not None:
            facts["peak_memory_bytes"] = self._process.peak_memory_bytes
        if self._end is not None:
            facts.update(self._end)
        elif self._killed:
            facts["outcome"] = "timed-out"
        else:
            facts["outcome"] = "died"
            facts["exit_code"] = status if status >= 0 else None
            facts["signal"] = _signal_name(-status) if status < 0 else None
        facts["stacks"] = _tail(self._files.stacks, STACKS_LINES) or None
        if facts["outcome"] not in ("trained", "skipped"):
            facts["stderr_tail"] = _tail(self._files.errors) or None
            facts["log_lines"] = _complaints(self._files.errors)
        return facts


class _Runner:
    """Runs all cases, as many at once as is asked for."""

    def __init__(self, settings: Settings, folder: Path, channel: Channel) -> None:
        self._settings = settings
        self._folder = folder
        self._channel = channel
        self._waiting: List[Facts] = list(settings["cases"])
        self._running: List[_RunningCase] = []

    def run(self) -> None:
        """Run every case to its end or to its deadline."""
        # What was imported is here to stay: no case shall search or copy it when it collects garbage.
        gc.freeze()
        # TensorFlow's two threads hold no lock of Python's between its import and its first use.
        warnings.filterwarnings("ignore", message=r".*fork\(\) may lead to deadlocks", category=DeprecationWarning)
        most = _parallel(self._settings)
        while self._waiting or self._running:
            while self._waiting and len(self._running) < most:
                job = self._waiting.pop(0)
                self._send("started", job)
                self._running.append(self._start(job))
            self._advance()
            time.sleep(POLL_S)

    def _advance(self) -> None:
        for case in list(self._running):
            facts = case.advance(lambda job, phase: self._send("phase", job, phase=phase))
            if facts is not None:
                self._running.remove(case)
                self._send("ended", case.job, facts=facts)

    def _send(self, event: str, job: Facts, **more: Any) -> None:
        self._channel.send({"event": event, "scenario": job["scenario"], "case": job["case"], **more})

    def _start(self, job: Facts) -> _RunningCase:
        files = _Files(self._folder, job)
        if _may_fork(self._settings["isolation"]):
            return _RunningCase(job, self._fork(job, files), files, job["deadline_s"])
        # A fresh interpreter imports again, in the case's own time.
        deadline_s = self._settings["import_deadline_s"] + job["deadline_s"]
        return _RunningCase(job, self._spawn(job, deadline_s), files, deadline_s)

    def _fork(self, job: Facts, files: _Files) -> _Process:
        parent = os.getpid()
        sys.stderr.flush()
        pid = os.fork()
        if pid:
            return _Process(pid)
        try:
            files.take_over()
            _end_with_the_parent(expected_parent=parent)
            _arm_stacks(files.stacks, job["deadline_s"])
            _run_case(job, self._settings, files)
        finally:
            os._exit(1)

    def _spawn(self, job: Facts, deadline_s: float) -> _Process:
        own_case = dict(job, deadline_s=deadline_s)
        settings = dict(self._settings, cases=[], own_case=own_case)
        argv = [*self._settings["respawn"], json.dumps(settings)]
        popen = subprocess.Popen(argv, stdin=subprocess.DEVNULL)  # noqa: S603 - kdoctor's own command line
        return _Process(popen.pid, popen)


def _import_and_run(job: Facts, settings: Settings, folder: Path) -> None:
    files = _Files(folder, job)
    try:
        _import_all(settings["preload"])
    except BaseException as error:
        traceback.print_exc()
        with files.events.open("a", encoding="utf-8") as events:
            _case(events, job, settings, files).write({"end": {"outcome": "raised", **_describe_error(error)}})
        return
    _run_case(job, settings, files)


def _run_case(job: Facts, settings: Settings, files: _Files) -> None:
    """Run the case's function and leave the process, without the clean-up that belongs to the parent."""
    with files.events.open("a", encoding="utf-8") as events:
        case = _case(events, job, settings, files)
        case.phase("import")
        try:
            _function(job)(case)
            end: Facts = {"outcome": "trained"}
        except NotHere as reason:
            end = {"outcome": "skipped", "skip_reason": str(reason)}
        except BaseException as error:
            traceback.print_exc()
            end = {"outcome": "raised", **_describe_error(error)}
        faulthandler.cancel_dump_traceback_later()
        _note_peak_memory(case)
        case.write({"end": end})
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _case(events: IO[str], job: Facts, settings: Settings, files: _Files) -> Case:
    return Case(
        events,
        settings["devices_kind"],
        settings["replicas"],
        stem=files.stem,
        deadline_s=job["deadline_s"],
        settings=job.get("settings"),
    )


def _function(job: Facts) -> Callable[[Case], None]:
    """The case's function in its scenario's program.

    Raises:
        LookupError: the program has no such case. Whatever loading the program raises goes through.
    """
    cases = getattr(_load(job["program"]), "CASES", None)
    if not isinstance(cases, dict) or job["case"] not in cases:
        raise LookupError("{} defines no case {!r} in CASES".format(job["program"], job["case"]))
    function: Callable[[Case], None] = cases[job["case"]]
    return function


def _load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("kdoctor_scenario", path)
    if spec is None or spec.loader is None:
        raise ImportError("{} is no Python file".format(path))
    module = importlib.util.module_from_spec(spec)
    sys.modules["kdoctor_scenario"] = module
    keep, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    spec.loader.exec_module(module)
    sys.dont_write_bytecode = keep
    return module


def _arm_stacks(path: Path, deadline_s: float) -> None:
    """Write the stacks of all threads on a crash, and shortly before the deadline.

    ``faulthandler`` does both without Python's lock, so a hang inside C code shows as well.
    """
    file = path.open("w")
    _kept_open.append(file)
    faulthandler.enable(file)
    faulthandler.dump_traceback_later(max(0.8 * deadline_s, deadline_s - 2.0), file=file)


_kept_open: List[IO[str]] = []
"""Files that ``faulthandler`` writes to, which Python must not close."""


def _die_when_orphaned() -> None:
    """End this process and its cases once stdin ends, for then kdoctor is gone."""
    while os.read(0, 1024):
        pass
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(os.getpid(), signal.SIGKILL)
    os._exit(1)


def _end_with_the_parent(expected_parent: Optional[int]) -> None:
    """Have Linux end this process when its parent dies, even if Python's lock is held by a hang."""
    if not sys.platform.startswith("linux"):
        return
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    except (OSError, AttributeError):
        return
    if expected_parent is not None and os.getppid() != expected_parent:
        os._exit(1)


def _may_fork(isolation: str) -> bool:
    if isolation == "fresh" or not hasattr(os, "fork"):
        return False
    return isolation == "fork" or not _holds_a_gpu()


def _holds_a_gpu() -> bool:
    """Whether CUDA was initialised in this process, after which a forked one cannot use it.

    The driver's library opens the device nodes then, and not before.
    """
    descriptors = Path("/proc/self/fd")
    if not descriptors.is_dir():
        return False
    for descriptor in descriptors.iterdir():
        try:
            target = os.readlink(str(descriptor))  # noqa: PTH115 - Python 3.8
        except OSError:
            continue
        if target.startswith("/dev/nvidia"):
            return True
    return False


def _parallel(settings: Settings) -> int:
    """How many cases run at once: on GPUs one, for they would share the memory; on the CPU one for each core."""
    if settings["parallel"]:
        return int(settings["parallel"])
    if settings["devices_kind"] == "gpu":
        return 1
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(MOST_PARALLEL, usable))


def _describe_error(error: BaseException) -> Facts:
    return {"error_type": type(error).__name__, "error_message": str(error)[:MESSAGE_CHARACTERS]}


def _note_peak_memory(case: Case) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    case.note(peak_memory_bytes=_peak_memory(resource.getrusage(resource.RUSAGE_SELF)))


def _peak_memory(usage: Any) -> int:
    """The largest resident set in bytes: Linux counts in KiB, macOS in bytes."""
    return int(usage.ru_maxrss) * (1 if sys.platform == "darwin" else 1024)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "signal {}".format(number)


def _tail(path: Path, lines: int = TAIL_LINES) -> str:
    """The last lines of a file that may be of any size."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        return "\n".join(file.read().decode("utf-8", "replace").splitlines()[-lines:])


def _complaints(path: Path) -> List[str]:
    """The last lines of the error output in which native code complains."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 16 * TAIL_BYTES))
        lines = file.read().decode("utf-8", "replace").splitlines()
    return [line[:MESSAGE_CHARACTERS] for line in lines if _COMPLAINT.search(line)][-MOST_COMPLAINTS:]
