"""Faults of single child processes: each one is killed, stopped, or runs out of memory."""

import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest

from helpers.command import make_target
from helpers.faults.interpreters import ENVIRONMENT
from helpers.faults.running import LONGEST_S, Fault, wait_for, wait_until_ended

PROBES = ("check", "--checklist", "multi-gpu-keras", "--no-smoke", "-v", "--python", "{folder}/target")
OTHER_HOST = '{"cluster": {"worker": ["127.0.0.1:9", "127.0.0.2:9"]}, "task": {"type": "worker", "index": 0}}'
CHILDREN = {
    "version": "-S -E -c",
    "packages": "inspect.environment",
    "libraries": "inspect.libraries",
    "NVML": "kdoctor.probes.nvml.child",
    "hosts": "kdoctor_fleet.probes.job_hosts.child",
}
"""A part of the command line of each child that reads the machine."""
TENSORFLOW = """\
import os, pathlib, time
__version__, backend = "2.21.0", None
class keras:
    class Model:
        __module__ = "tensorflow"
def __getattr__(name):
    if not name.startswith("__"):
        pathlib.Path(FOLDER).write_text(str(os.getpid()))
        time.sleep(1000)
    raise AttributeError(name)
"""
"""As much of TensorFlow as the runner needs before a case, which hangs, and says when it begins."""
TRAINING = (*ENVIRONMENT, "-v", "--select", "smoke.baseline")
CGROUPS = Path("/sys/fs/cgroup")
LIMIT = 300_000_000


def _target(folder: Path) -> None:
    make_target(folder / "target", tensorflow="")


def _descendants(pid: int) -> Iterator[int]:
    """All processes below a process, without looking at the others."""
    try:
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in (thread / "children").read_text().split():
                yield int(child)
                yield from _descendants(int(child))
    except OSError:
        return


def _send(part: str, number: int, process: psutil.Process, folder: Path) -> None:
    """Send a signal to the child, as soon as it is there."""
    deadline = time.monotonic() + LONGEST_S / 4
    while time.monotonic() < deadline:
        for pid in _descendants(process.pid):
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            except OSError:
                continue
            if part in words:
                os.kill(pid, number)
                return
        time.sleep(0.001)
    pytest.fail(f"no child with {part} appeared")


def _slow_case(folder: Path) -> None:
    """An interpreter whose cases hang."""
    target = make_target(folder / "target", tensorflow=TENSORFLOW.replace("FOLDER", repr(str(folder / "started"))))
    (next(target.glob("lib/python*/site-packages")) / "numpy").mkdir()
    for name in ("__init__", "random"):
        (next(target.glob("lib/python*/site-packages")) / "numpy" / f"{name}.py").touch()


def _signal_case(number: int, process: psutil.Process, folder: Path) -> None:
    wait_for(folder / "started")
    time.sleep(0.1)
    os.kill(int((folder / "started").read_text()), number)


def _signal_runner(number: int, process: psutil.Process, folder: Path) -> None:
    """Act on the parent of the case."""
    wait_for(folder / "started")
    time.sleep(0.1)
    psutil.Process(int((folder / "started").read_text())).parent().send_signal(number)  # type: ignore[union-attr]


def _greedy(limit: str, folder: Path) -> None:
    """An interpreter whose TensorFlow takes more memory than it may."""
    source = f"{limit}\nx = bytearray(2_000_000_000)\nx[::4096] = bytes(len(x[::4096]))\n"
    make_target(folder / "target", tensorflow=source)


def _limited(folder: Path) -> None:
    _greedy(f"import resource\nresource.setrlimit(resource.RLIMIT_AS, ({LIMIT}, {LIMIT}))", folder)


def _in_cgroup(folder: Path) -> None:
    """A memory cgroup, in which the kernel kills the child."""
    for parent, name in ((CGROUPS / "memory", "memory.limit_in_bytes"), (CGROUPS, "memory.max")):
        group = parent / f"kdoctor-fault-{uuid.uuid4().hex}"
        try:
            group.mkdir()
            (group / name).write_text(str(LIMIT))
        except OSError:
            continue
        (folder / "group").write_text(str(group))
        _greedy(f"open({str(group / 'cgroup.procs')!r}, 'w').write('0')", folder)
        return
    pytest.skip("memory cgroups cannot be created here")


def _remove_cgroup(process: psutil.Process, folder: Path) -> None:
    wait_until_ended(process)
    Path((folder / "group").read_text()).rmdir()


def _of_probes(verb: str, number: int, says: str) -> dict[str, Fault]:
    return {
        f"children: {verb}, {name}": Fault(
            exits=(2,) if name == "version" else (1, 3),
            says=f"{says}|not a Python interpreter|did not report its version",
            arguments=PROBES,
            variables={"TF_CONFIG": OTHER_HOST},
            prepare=_target,
            meanwhile=partial(_send, part, number),
            slow=True,
        )
        for name, part in CHILDREN.items()
    }


def _of_trainings(verb: str, says: str, act: Callable[[psutil.Process, Path], None], **changes: object) -> Fault:
    settings = {"exits": (1, 3), "says": says, "arguments": (*TRAINING, "--timeout", "30"), "prepare": _slow_case}
    return Fault(**{**settings, "meanwhile": act, "slow": True, **changes})  # type: ignore[arg-type]


SINGLE_CHILDREN: dict[str, Fault] = {
    **_of_probes("killed", signal.SIGKILL, "SIGKILL"),
    **_of_probes("stopped", signal.SIGSTOP, "did not finish within|in time"),
    "children: killed, a case": _of_trainings("killed", "SIGKILL", partial(_signal_case, signal.SIGKILL)),
    "children: stopped, a case": _of_trainings("stopped", "timed out after", partial(_signal_case, signal.SIGSTOP)),
    "children: killed, the runner": _of_trainings("killed", "SIGKILL", partial(_signal_runner, signal.SIGKILL)),
    "children: stopped, the runner": _of_trainings(
        "stopped", "timed out after", partial(_signal_runner, signal.SIGSTOP)
    ),
    "children: address space": Fault(exits=(1,), says="MemoryError", arguments=TRAINING, prepare=_limited, slow=True),
    "children: killed by the kernel in a cgroup": Fault(
        exits=(1,), says="SIGKILL", arguments=TRAINING, prepare=_in_cgroup, meanwhile=_remove_cgroup, slow=True
    ),
}
