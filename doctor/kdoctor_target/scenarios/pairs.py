"""Each pair of replicas alone, so that the one bad link or GPU can be named.

One pair after another, each in a process of its own: pairs at the same time would share PCIe switches and the
processors' interconnect, so that a slow link showed in its neighbours' numbers, and a hang in nobody's in particular.
What it costs is bounded. A pair may take five times as long as those that trained, and all of them what the scenario's
deadline leaves; the order is that of a tournament, in which every GPU has played once before any plays twice, so that
an early end leaves no GPU out. A pair that was not come to is ``not-tested``.

Each pair trains a few steps by hand and must end with the weights that one CPU gives: a GPU that computes wrongly
would be no reference for itself. Then it all-reduces a large message, which must be right to the bit; the training's
gradients are so small that NCCL sends them in another way.

Measures: ``pairs``, ``tested``, ``slowest_gbs`` and ``fastest_gbs``; ``0-1 gbs`` and so on for each that was timed.

Settings: ``patience_s``, the seconds for each pair instead; ``least_s``, those that every pair has once some trained.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Dict, List, Sequence, Tuple

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.runner.isolated import SURVEY_S, in_a_process, list_devices, note_devices, take_devices
from kdoctor_target.training.all_reduce import bytes_per_s, message_bytes, wrong_values
from kdoctor_target.training.custom_loop import train_by_hand
from kdoctor_target.training.replicas import Batches, Reference, describe_strategy, inspect_weights, regression
from kdoctor_target.training.round_robin import tournament
from kdoctor_target.training.workers import Facts, Task, expect_all_trained

LEAST = 3
STEPS = 6
PER_REPLICA = 8

FIRST_S = 180.0
"""Seconds for the first two pairs: on a GPU that is newer than TensorFlow's build the driver compiles every kernel."""
MOST_S, LEAST_S, TIMES = 60.0, 30.0, 5.0
"""Seconds for a pair later: as many times what a good one took, within these bounds."""
_BUDGET = 0.85
"""Share of the scenario's deadline after which no pair is started."""

_FIELDS = (
    "outcome", "phase", "finished", "steps", "error_type", "error_message", "exit_code", "signal", "stacks",
    "stderr_tail", "log_lines", "weights", "weight_deviation", "message_bytes", "wrong_values", "bytes_per_s",
    "seconds",
)  # fmt: skip

Pair = Tuple[int, int]


def alone(case: Case) -> None:
    """Every pair, one after another."""
    if case.replicas is not None or case.devices_kind == "cpu":
        _expect_enough(case, case.replicas or 1)
    end = time.monotonic() + _BUDGET * case.deadline_s
    names, reference = _survey(case)
    _expect_enough(case, len(names))
    order = list(tournament(len(names)))
    found: Dict[Pair, Facts] = {pair: {"outcome": "not-tested"} for pair in order}
    _note(case, found)
    good: List[float] = []
    for number, pair in enumerate(order):
        patience = min(_patience(case, number, good), end - time.monotonic())
        if patience < (np.median(good) if good else 1.0):
            break  # what is left stays untested
        case.phase(_progress(number, order, names, good))
        found[pair] = _run(case, pair, reference, patience)
        if found[pair]["outcome"] == "trained":
            good.append(found[pair]["seconds"])
        _note(case, found)
    case.phase("inspect")
    _measure(case, found)


def _expect_enough(case: Case, replicas: int) -> None:
    if replicas < LEAST:
        many = "{} replica{}".format(replicas, "" if replicas == 1 else "s")
        case.skip("a pair alone tells more than all at once where there are three replicas; here: {}".format(many))


def _patience(case: Case, number: int, good: Sequence[float]) -> float:
    own = case.settings.get("patience_s")
    if own is not None:
        return float(own)
    if good:
        least = float(case.settings.get("least_s") or LEAST_S)
        return max(least, min(MOST_S, TIMES * float(np.median(good))))
    return FIRST_S if number < 2 else MOST_S  # noqa: PLR2004 - if the first was bad, the second may compile as long


def _progress(number: int, order: Sequence[Pair], names: Sequence[str], good: Sequence[float]) -> str:
    one, other = (names[index].rpartition("device:")[2] for index in order[number])
    left = ", about {:.0f} s left".format((len(order) - number) * np.median(good)) if good else ""
    return "pair {} of {} ({} - {}){}".format(number + 1, len(order), one, other, left)


def _note(case: Case, found: Dict[Pair, Facts]) -> None:
    """Say all pairs again, so that they are known even if this case is ended."""
    case.note(pairs=[dict(facts, first=first, second=second) for (first, second), facts in sorted(found.items())])


def _measure(case: Case, found: Dict[Pair, Facts]) -> None:
    rates = {pair: facts["bytes_per_s"] / 1e9 for pair, facts in found.items() if facts.get("bytes_per_s")}
    case.measure({"pairs": len(found), "tested": sum(facts["outcome"] != "not-tested" for facts in found.values())})
    if rates:
        case.measure({"slowest_gbs": min(rates.values()), "fastest_gbs": max(rates.values())})
    case.measure({"{}-{} gbs".format(*pair): rate for pair, rate in sorted(rates.items())})


def _survey(case: Case) -> Tuple[List[str], Path]:
    """The devices, and the file with one CPU's weights; found by a process of its own, for this one must touch none."""
    case.phase("reference")
    file = case.stem.with_name(case.stem.name + ".reference.npz")

    def task(own: Case) -> None:
        list_devices(own)
        found = tf.config.list_logical_devices("CPU")[0].name
        model = train_by_hand(own, tf.distribute.OneDeviceStrategy(found), _batches())
        np.savez(str(file), *model.get_weights())

    facts = in_a_process(case, Task("survey", 0), task, SURVEY_S)
    expect_all_trained([facts])
    case.note(reference_losses=facts["losses"])
    return note_devices(case, facts), file


def _run(case: Case, pair: Pair, reference: Path, patience: float) -> Facts:
    """What became of a pair."""

    def task(own: Case) -> None:
        own.phase("strategy")
        # TensorFloat-32 keeps ten bits of a product's factors: equality with a CPU could not be told.
        tf.config.experimental.enable_tensor_float_32_execution(False)  # noqa: FBT003 - TensorFlow's signature
        strategy = tf.distribute.MirroredStrategy(take_devices(own, pair))
        describe_strategy(own, strategy)
        batches = _batches()
        model = train_by_hand(own, strategy, batches)
        weights = list(np.load(str(reference)).values())
        inspect_weights(own, strategy, model, Reference([], weights))
        own.phase("all-reduce")
        size = message_bytes(own)
        own.note(message_bytes=size, wrong_values=wrong_values(strategy, size))
        own.note(bytes_per_s=bytes_per_s(strategy, size))

    facts = in_a_process(case, Task("pair-{}".format(pair[0]), pair[1]), task, patience)
    return {name: facts[name] for name in _FIELDS if name in facts}


def _batches() -> Batches:
    global_batch = 2 * PER_REPLICA
    return Batches(*regression(STEPS * global_batch), global_batch)


CASES = {"alone": alone}
