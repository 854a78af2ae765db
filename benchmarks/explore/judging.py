"""The verdict about one job: preflight's, or that of following it."""

import math
from dataclasses import dataclass
from typing import Any

import tensorflow as tf
from benchmarks.explore.drawing import Sources, keras
from benchmarks.explore.following import DrawsRandomNumbersError, Followed, broken, follow
from benchmarks.explore.scripts import is_followed, scripts

from kdoctor import preflight
from kdoctor.model import Severity, Status

COMPARED = "job.equals-one-device"
"""A job that preflight examines has a verdict if this check could be judged."""


@dataclass(frozen=True)
class Outcome:
    """What was found about one job."""

    parts: Sources
    verdict: str
    """``clean``, ``breaks`` or ``none``."""
    reason: str
    """The checks that fail, the invariant that breaks, or why there is no verdict."""
    script: str
    smallest: Sources = ()
    """The parts with which it still breaks in the same way, if not all are needed."""
    keras: str = keras.__version__


def examine(parts: Sources, ignored: frozenset[str]) -> Outcome:
    """Train the job on one device in the first form that it takes, and judge it on two replicas.

    Args:
        parts: the sources of its parts.
        ignored: checks that fail in a job of none of the symbols.
    """
    if unknown := [part for part in parts if part.endswith("=?")]:
        return Outcome(parts, "none", f"no value is known for {unknown[0][:-2]}", "")
    error, script = "", ""
    for script in scripts(parts):
        names: dict[str, Any] = {}
        try:
            exec(script, names)  # noqa: S102 - the script that this program wrote
            reference = follow(names) if is_followed(parts) else _loss(names)
        except DrawsRandomNumbersError:
            return Outcome(parts, "none", "its layers draw random numbers, which differ by design", script)
        except Exception as problem:  # noqa: BLE001 - the next form may train
            error = error or f"{type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''}"
            continue
        if isinstance(reference, Followed):
            found = broken(names, tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]), reference)
            return Outcome(parts, "breaks" if found else "clean", found, script)
        if not math.isnan(reference):
            return _preflight(parts, names, script, ignored)
        error = error or "the loss is NaN on one device"
    return Outcome(parts, "none", f"does not train on one device: {error}"[:200], script)


def _loss(names: dict[str, Any]) -> float:
    history = names["build"]().fit(**names["data"](), verbose=0).history
    return float(history["loss"][0])


def _preflight(parts: Sources, names: dict[str, Any], script: str, ignored: frozenset[str]) -> Outcome:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    results = preflight(names["build"], lambda: names["data"]()["x"], strategy).report.results
    failed = {item.id for item in results if item.status is Status.FAIL and item.severity is not Severity.INFO}
    if unequal := sorted(failed - ignored):
        return Outcome(parts, "breaks", ", ".join(unequal), script)
    compared = next((item for item in results if item.id == COMPARED), None)
    if compared is None or compared.status is not Status.PASS:
        return Outcome(parts, "none", (compared and compared.reason) or f"{COMPARED} has no result", script)
    return Outcome(parts, "clean", "", script)
