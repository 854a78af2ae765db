"""Each pair of replicas separately, to identify a bad link or GPU.

The pairs run in sequence, each in a separate process. Run at once they would share PCIe switches and the processors'
interconnect, and a slow or hanging link could not be identified. The time is bounded: a pair may take five times as
long as the pairs that trained, and all pairs together what the scenario's deadline leaves. The order is round-robin:
every GPU is tested once before any is tested twice, so that an early end leaves no GPU out. A pair that was not
reached is ``not-tested``.

Each pair trains a few steps and must reach the weights of one CPU, because a faulty GPU cannot be its own reference.
Then it all-reduces a large message, whose sum must be exact: the gradients of the training are so small that NCCL
uses a different protocol for them.

Measures: ``pairs``, ``tested``, ``slowest_gbs`` and ``fastest_gbs``; ``0-1 gbs`` and so on for each timed pair.

Settings: ``patience_s``, a fixed number of seconds for each pair; ``least_s``, the minimum once some pairs trained.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Dict, List, Sequence, Tuple

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.all_reduce import bytes_per_s, message_bytes, wrong_values
from kdoctor_target.training.custom_loop import train_custom_loop
from kdoctor_target.training.isolated import SURVEY_S, list_devices, note_devices, take_devices
from kdoctor_target.training.regression import Reference, make_batches
from kdoctor_target.training.replicas import compute_exactly, describe_strategy, inspect_weights
from kdoctor_target.training.round_robin import round_robin
from kdoctor_target.training.workers import Facts, Task, expect_all_trained, in_a_process

LEAST = 3

FIRST_S = 180.0
"""Seconds for the first two pairs: on a GPU newer than the TensorFlow build, the driver compiles every kernel."""
MOST_S, LEAST_S, TIMES = 60.0, 30.0, 5.0
"""For later pairs: maximum and minimum seconds, and the multiple of the median time of the pairs that trained."""
_BUDGET = 0.85
"""Share of the scenario's deadline after which no further pair is started."""

_FIELDS = (
    "outcome", "phase", "finished", "steps", "error_type", "error_message", "exit_code", "signal", "stacks",
    "stderr_tail", "log_lines", "weights", "weight_deviation", "message_bytes", "wrong_values", "bytes_per_s",
    "seconds",
)  # fmt: skip

Pair = Tuple[int, int]


def each_pair(case: Case) -> None:
    """Train every pair, in sequence."""
    if case.replicas is not None or case.devices_kind == "cpu":
        _expect_enough(case, case.replicas or 1)
    end = time.monotonic() + _BUDGET * case.deadline_s
    names, reference = _survey(case)
    _expect_enough(case, len(names))
    order = list(round_robin(len(names)))
    found: Dict[Pair, Facts] = {pair: {"outcome": "not-tested"} for pair in order}
    _note(case, found)
    good: List[float] = []
    for number, pair in enumerate(order):
        patience = min(_patience(case, number, good), end - time.monotonic())
        if patience < (np.median(good) if good else 1.0):
            break  # the remaining pairs stay not-tested
        case.phase(_progress(number, order, names, good))
        found[pair] = _run(case, pair, reference, patience)
        if found[pair]["outcome"] == "trained":
            good.append(found[pair]["seconds"])
        _note(case, found)
    case.phase("inspect")
    _measure(case, found)


def _expect_enough(case: Case, replicas: int) -> None:
    if replicas < LEAST:
        case.skip(f"testing pairs requires at least {LEAST} replicas, {replicas} available")


def _patience(case: Case, number: int, good: Sequence[float]) -> float:
    fixed = case.settings.get("patience_s")
    if fixed is not None:
        return float(fixed)
    if good:
        least = float(case.settings.get("least_s") or LEAST_S)
        return max(least, min(MOST_S, TIMES * float(np.median(good))))
    return FIRST_S if number < 2 else MOST_S  # noqa: PLR2004 - if the first failed, the second compiles the kernels


def _progress(number: int, order: Sequence[Pair], names: Sequence[str], good: Sequence[float]) -> str:
    one, other = (names[index].rpartition("device:")[2] for index in order[number])
    left = f", about {(len(order) - number) * np.median(good):.0f} s left" if good else ""
    return f"pair {number + 1} of {len(order)} ({one} - {other}){left}"


def _note(case: Case, found: Dict[Pair, Facts]) -> None:
    """Note all pairs, so that they are known even if this case is ended."""
    case.note(pairs=[dict(facts, first=first, second=second) for (first, second), facts in sorted(found.items())])


def _measure(case: Case, found: Dict[Pair, Facts]) -> None:
    rates = {pair: facts["bytes_per_s"] / 1e9 for pair, facts in found.items() if facts.get("bytes_per_s")}
    case.measure({"pairs": len(found), "tested": sum(facts["outcome"] != "not-tested" for facts in found.values())})
    if rates:
        case.measure({"slowest_gbs": min(rates.values()), "fastest_gbs": max(rates.values())})
    case.measure({f"{first}-{second} gbs": rate for (first, second), rate in sorted(rates.items())})


def _survey(case: Case) -> Tuple[List[str], Path]:
    """The devices, and the file with one CPU's weights, by a separate process: this one must not use a device."""
    case.phase("reference")
    file = case.file("reference.npz")

    def task(task_case: Case) -> None:
        list_devices(task_case)
        cpu = tf.config.list_logical_devices("CPU")[0].name
        model = train_custom_loop(task_case, tf.distribute.OneDeviceStrategy(cpu), make_batches(2))
        np.savez(str(file), *model.get_weights())

    facts = in_a_process(case, Task("survey", 0), task, SURVEY_S)
    expect_all_trained([facts])
    case.note(reference_losses=facts["losses"])
    return note_devices(case, facts), file


def _run(case: Case, pair: Pair, reference: Path, patience: float) -> Facts:
    """Train a pair in a separate process; returns its facts."""

    def task(task_case: Case) -> None:
        task_case.phase("strategy")
        compute_exactly()
        strategy = tf.distribute.MirroredStrategy(take_devices(task_case, pair))
        describe_strategy(task_case, strategy)
        model = train_custom_loop(task_case, strategy, make_batches(2))
        inspect_weights(task_case, strategy, model, Reference([], list(np.load(str(reference)).values())))
        task_case.phase("all-reduce")
        size = message_bytes(task_case)
        task_case.note(message_bytes=size, wrong_values=wrong_values(strategy, size))
        task_case.note(bytes_per_s=bytes_per_s(strategy, size))

    facts = in_a_process(case, Task(f"pair-{pair[0]}", pair[1]), task, patience)
    return {name: facts[name] for name in _FIELDS if name in facts}


CASES = {"alone": each_pair}
