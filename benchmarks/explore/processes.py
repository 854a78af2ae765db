"""Jobs side by side, each in its own process that is forked after the import, with a deadline."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

import tensorflow as tf
from benchmarks.explore.drawing import Sources
from benchmarks.explore.judging import Outcome, examine

DEADLINE_S = 180
FORK = get_context("fork")


def _child(pipe: Connection, parts: Sources, ignored: frozenset[str]) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    try:
        outcome = examine(parts, ignored)
    except Exception as error:  # noqa: BLE001 - it is this job's result
        outcome = Outcome(parts, "none", f"preflight raised {type(error).__name__}: {error}"[:200], "")
    pipe.send(outcome)


def run(jobs: Iterator[Sources], note: Callable[[Outcome], None], ignored: frozenset[str], processes: int) -> None:
    """Examine jobs side by side, each in its own process with a deadline."""
    running: dict[Connection, tuple[Any, Sources, float]] = {}
    waiting: Sources | None = next(jobs, None)
    while waiting is not None or running:
        while waiting is not None and len(running) < processes:
            receiver, sender = FORK.Pipe(duplex=False)
            process = FORK.Process(target=_child, args=(sender, waiting, ignored))
            process.start()
            sender.close()
            running[receiver] = (process, waiting, time.monotonic() + DEADLINE_S)
            waiting = next(jobs, None)
        ready = wait(list(running), timeout=1)
        for receiver, (process, parts, deadline) in list(running.items()):
            if receiver not in ready and time.monotonic() < deadline:
                continue
            outcome = Outcome(parts, "none", f"no result within {DEADLINE_S} s", "")
            if receiver in ready:
                outcome = Outcome(parts, "none", "its process died", "")
                with suppress(EOFError):
                    outcome = receiver.recv()
            process.kill()
            process.join()
            del running[receiver]
            note(outcome)


def smaller(outcome: Outcome, ignored: frozenset[str]) -> Outcome:
    """The combination without the parts that it breaks without."""
    for part in outcome.parts:
        rest = tuple(other for other in outcome.parts if other != part)
        found: list[Outcome] = []
        if rest:
            run(iter([rest]), found.append, ignored, 1)
        if found and (found[0].verdict, _broken(found[0])) == ("breaks", _broken(outcome)):
            return smaller(found[0], ignored)
    return outcome


def _broken(outcome: Outcome) -> str:
    """The checks or the invariant, without the name of a variable."""
    return outcome.reason.partition(":")[0]
