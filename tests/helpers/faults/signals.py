"""Ctrl-C, SIGTERM and SIGKILL at many moments."""

import random
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil

from helpers.command import kdoctor
from helpers.faults.interpreters import ENVIRONMENT, end_at_once, slow_import
from helpers.faults.running import QUICK, Fault, wait_for, wait_until_ended

MOMENTS = 60
LATEST_S = 2.5
"""A quick run takes about as long."""


def _after(seconds: float, kind: signal.Signals) -> Callable[[psutil.Process, Path], None]:
    def act(process: psutil.Process, folder: Path) -> None:
        wait_for(folder / "started")
        time.sleep(seconds)
        process.send_signal(kind)

    return act


def _kill_then_run(process: psutil.Process, folder: Path) -> None:
    """Kill a run in its trainings. The next run with trainings removes what it left."""
    wait_for(folder / "started")
    process.kill()
    wait_until_ended(process)
    assert list((folder / "tmp").iterdir())
    end_at_once(folder)
    arguments = [item.replace("{folder}", str(folder)) for item in ENVIRONMENT]
    assert kdoctor(*arguments, cwd=folder, TMPDIR=str(folder / "tmp")).returncode == 1


def _at(seconds: float, **changes: object) -> Fault:
    settings = {
        "exits": (130, 0, -2),
        "says": "interrupted|READY in|^$",
        "arguments": QUICK,
        "announce": True,
        "meanwhile": _after(seconds, signal.SIGINT),
        **changes,
    }
    return Fault(**settings)  # type: ignore[arg-type]


_random = random.Random(16)  # noqa: S311 - moments, no secrets
_moments = sorted(_random.uniform(0, LATEST_S) for _ in range(MOMENTS))

SIGNALS: dict[str, Fault] = {
    "signals: Ctrl-C at once": _at(0.0),
    "signals: Ctrl-C after 0.05 s": _at(0.05, slow=True),
    "signals: Ctrl-C after 0.60 s": _at(0.6),
    **{f"signals: Ctrl-C after {seconds:.2f} s": _at(seconds, slow=True) for seconds in _moments},
    "signals: SIGTERM in a training": Fault(
        exits=(130,),
        says="interrupted",
        arguments=ENVIRONMENT,
        prepare=slow_import,
        meanwhile=_after(0.1, signal.SIGTERM),
        slow=True,
    ),
    "signals: SIGKILL in a training, and the next run": Fault(
        exits=(-9,), arguments=ENVIRONMENT, prepare=slow_import, meanwhile=_kill_then_run
    ),
}
