"""The first step of a training loop on one device: another process runs the script, with one replica on the CPU.

In place of its first step, the function of the step gets the examples of each replica, and then all of them, in batches
of the size that the script has with one replica. The optimizer does not apply these gradients.
"""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import random
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, List, NoReturn, Sequence, Tuple

import numpy as np
import tensorflow as tf
from tensorflow.python.distribute.values import PerReplica
from tensorflow.python.ops import resource_variable_ops

from kdoctor_job.target.first_step import Arrays, FirstStep, Gradients, is_seen, mirrored
from kdoctor_job.target.resuming import SHOWN
from kdoctor_job.target.strategies import replace_own
from kdoctor_target.runner.case import Case
from kdoctor_target.training.replicas import make_strategy
from kdoctor_target.training.workers import Cluster, Facts, Task

_ROLE = "alone"
_SEED = 7
_TRIES = 12
"""How often a step is repeated whose update is skipped: a loss scale is halved each time."""
_EQUAL = 1e-5
"""Relative difference of values that count as equal before the step."""
_STRAIGHT, _ENOUGH = 1e-3, 8
"""Relative difference of gradients that have one direction, and the least numbers of which that is said."""


def seed() -> None:
    """Let this process draw as the other one does. Keras, which may not be imported yet, takes its seeds from these."""
    random.seed(_SEED)
    np.random.seed(_SEED)  # noqa: NPY002
    tf.random.set_seed(_SEED)


def examine(step: FirstStep, alone: Alone | None) -> Facts:
    """What the step of the replicas was, as facts of ``JobStep``."""
    parts = [batch_of(call, is_distributed=step.is_distributed) for call in step.calls]
    rows = parts[0][0]
    facts: Facts = {
        "name": step.name,
        "of_keras": step.of_keras,
        "rows": rows,
        "alike": not rows
        and not step.unseen
        and any(one.ndim and len(one) > 1 for one in next(iter(step.calls[0].values()))),
        "unseen": step.unseen,
        "updated": len(step.gradients),
        "sums": step.sums,
        **_variables(),
    }
    if alone is None:
        return {**facts, "not_compared": "this system cannot fork processes"}
    if not rows or step.unseen:
        return facts
    if not step.gradients:
        of = "" if step.is_optimized else " with an optimizer of Keras"
        return {**facts, "not_compared": f"its first step updates no variables{of}"}
    return {**facts, **alone.compare(step, parts)}


def _variables() -> Facts:
    """The trained variables that are wrong after the step."""
    different, nonfinite = set(), set()
    for one in mirrored():
        copies = [copy.numpy() for copy in one.values]
        if not all(np.isfinite(copy).all() for copy in copies):
            nonfinite.add(one.name.partition(":")[0])
        elif any(_apart(copy, copies[0]) > _EQUAL for copy in copies[1:]):
            different.add(one.name.partition(":")[0])
    return {"different": sorted(different)[:SHOWN], "nonfinite": sorted(nonfinite)[:SHOWN]}


class Alone:
    """The other process, which is forked before a device is used, and waits."""

    def __init__(self, case: Case, run_script: Callable[[FirstStep], object]) -> None:
        self._case = case
        self._files = case.file("replicas"), case.file("one-device")
        self._run_script = run_script
        self._cluster = Cluster(case, separate_files=True)
        self._told, self._tell = os.pipe()
        self._cluster.start(Task(_ROLE, 0), self._wait, with_config=False)

    def dismiss(self) -> None:
        """Let the process end."""
        for end in (self._tell, self._told):
            with contextlib.suppress(OSError):
                os.close(end)
        self._cluster.wait(1.0)

    def compare(self, step: FirstStep, parts: List[Tuple[List[int], List[bool]]]) -> Facts:
        """How the step differs from one device's, as facts of ``JobStep``."""
        calls = [Examples([call[number] for number in sorted(call)], *part) for call, part in zip(step.calls, parts)]
        with self._files[0].open("wb") as file:
            pickle.dump((calls, step.values), file)
        os.write(self._tell, b"1")
        (done,) = self._cluster.wait(self._case.deadline_s / 3)
        if done["outcome"] != "trained" or not self._files[1].exists():
            reason = done.get("error_message") or f"the process {done['outcome']}"
            return {"not_compared": f"one device did not take it: {reason}"}
        with self._files[1].open("rb") as file:
            return compared(step.gradients, pickle.load(file))  # noqa: S301 - written by the other process

    def _wait(self, case: Case, _: Task) -> None:
        os.close(self._tell)
        if not os.read(self._told, 1):
            return
        tf.config.set_visible_devices([], "GPU")
        case.devices_kind, case.replicas = "cpu", 1
        strategy = make_strategy(case)
        replace_own(strategy)
        with self._files[0].open("rb") as file:
            step = StepAlone(strategy, *pickle.load(file))  # noqa: S301 - written by the other process
        tf.config.run_functions_eagerly(True)  # noqa: FBT003 - TensorFlow's signature
        step.taken = lambda: self._end(case, step.found)
        seed()
        self._run_script(step)

    def _end(self, case: Case, found: OneDevice) -> NoReturn:
        """End this process, not with ``conclude``: to cancel a ``faulthandler`` that a fork has not copied hangs."""
        with self._files[1].open("wb") as file:
            pickle.dump(found, file)
        case.write({"end": {"outcome": "trained"}})
        os._exit(0)


@dataclass
class OneDevice:
    """Gradients on one device, and the values of the variables before."""

    begin: Gradients
    """Those of the script's own step."""
    batches: List[Gradients]
    """With all examples, in batches of the script's size; none if that does not divide their number."""
    again: Gradients = field(default_factory=dict)
    """With those of the first batch again."""
    shares: List[Gradients] = field(default_factory=list)
    """With the examples of each replica, if the function takes them."""
    at_once: Gradients = field(default_factory=dict)
    """With all at once, if the function takes them."""


@dataclass
class Examples:
    """What the replicas got in one call of ``run``."""

    replicas: List[Arrays]
    rows: List[int]
    """The examples of each replica; empty if it got none."""
    batched: List[bool]
    """For each tensor, whether it has a row, or as many, for each of them."""

    def batches(self, own: Arrays) -> List[Arrays]:
        """All of them in batches of the size of ``own``; none if that does not divide their number."""
        if not self.rows:
            return []
        size, total, whole = len(own[self.batched.index(True)]), sum(self.rows), self.whole

        def cut(one: Any, at: int) -> Any:
            return one[len(one) * at // total : len(one) * (at + size) // total]

        at_all = range(0, total, size) if total % size == 0 else []
        return [[cut(one, at) if many else one for one, many in zip(whole, self.batched)] for at in at_all]

    @property
    def whole(self) -> Arrays:
        """All of them at once."""
        return [np.concatenate(all_) if many else all_[0] for all_, many in zip(zip(*self.replicas), self.batched)]


class StepAlone(FirstStep):
    """The first step on one replica, and its function with other examples."""

    applies = False

    def __init__(self, strategy: Any, calls: List[Examples], values: Dict[int, Any]) -> None:
        super().__init__(strategy)
        self.values = values
        self._examples = calls
        self._own: List[Tuple[Any, Any]] = []
        """The function and the arguments of each call of the script's own step."""
        self._begin: List[Tuple[Any, Any]] = []
        """The variables and their values before it."""
        self.found: Any = None

    def run(
        self, inherited: Callable[..., Any], strategy: Any, function: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        """``strategy.run``, and when variables are updated the same with the other examples."""
        if not self.calls:
            kind = resource_variable_ops.ResourceVariable
            self._begin = [(one, one.numpy()) for one in gc.get_objects() if isinstance(one, kind)]
        before = len(self.calls)
        result = self._call(inherited, strategy, function, args, kwargs)
        if len(self.calls) > before:
            self._own.append((function, (args, kwargs)))
        if not self.is_over():
            return result
        begin, own = self.gradients, [call[0] for call in self.calls]

        def gradients_of(calls: Sequence[Arrays]) -> Gradients:
            for variable, value in self._begin:
                variable.assign(value)
            for _ in range(_TRIES):
                self._gradients, self.calls, self._updated_on = {}, [], set()
                for (called, own_arguments), arrays in zip(self._own, calls):
                    rest = iter(map(tf.constant, arrays))
                    leaves = tf.nest.flatten(own_arguments)
                    leaves = [one.values[0] if isinstance(one, PerReplica) else one for one in leaves]
                    given = [next(rest) if is_seen(leaf) else leaf for leaf in leaves]
                    self._call(inherited, strategy, called, *tf.nest.pack_sequence_as(own_arguments, given))
                if self.gradients:
                    break
            return self.gradients

        batches = self._batches(own)
        alone = [gradients_of(calls) for calls in (*batches, *batches[:1])]
        self.found = OneDevice(begin, alone[:-1], alone[-1] if alone else {})
        with contextlib.suppress(Exception):  # the function may need batches of its size
            shares = zip(*(call.replicas for call in self._examples))
            self.found.shares = [gradients_of(calls) for calls in shares]
            self.found.at_once = gradients_of([call.whole for call in self._examples])
        self.taken()
        return result

    def _batches(self, own: List[Arrays]) -> List[List[Arrays]]:
        """The examples of each call, in as many batches as the first one has; none if they do not fit ``own``."""
        if len(own) != len(self._examples):
            return []
        cut = [call.batches(one) for call, one in zip(self._examples, own)]
        number = len(cut[0])
        fitting = [one if call.rows else [call.whole] * number for call, one in zip(self._examples, cut)]
        return [list(calls) for calls in zip(*fitting)] if all(len(one) == number for one in fitting) else []


def batch_of(inputs: Dict[int, Arrays], *, is_distributed: bool) -> Tuple[List[int], List[bool]]:
    """The examples of each replica, and for each tensor whether it has a row, or as many, for each of them.

    No rows if the replicas get the same tensors, or none. Equal rows of distributed data are other examples, too.
    """
    given = list(zip(*(inputs[number] for number in sorted(inputs))))
    first = next((one for one in given if one[0].ndim and (len(one) == 1 or not _are_equal(one))), None)
    if first is None and is_distributed:
        first = next((one for one in given if one[0].ndim and _are_equal(one[0])), None)
    rows = [] if first is None else [len(part) for part in first]
    return rows, [_is_batch([len(part) if part.ndim else 0 for part in one], rows, one) for one in given]


def _is_batch(lengths: List[int], rows: List[int], arrays: Sequence[Any]) -> bool:
    """Whether these lengths are a multiple of the rows; of equal arrays, the rows."""
    if not any(lengths) or not rows or (lengths != rows and _are_equal(arrays)):
        return False
    return all(length * sum(rows) == row * sum(lengths) for length, row in zip(lengths, rows))


def _are_equal(arrays: Sequence[Any]) -> bool:
    return all(np.array_equal(arrays[0], other) for other in arrays[1:])


def compared(replicas: Gradients, alone: OneDevice) -> Facts:
    """Compare the gradients that are applied on the replicas with those of one device."""
    if not alone.batches:
        return {"not_compared": "with one replica, its batches do not divide those of the replicas"}
    sizes = _sizes(replicas)
    if any(_sizes(one) != sizes for one in (alone.begin, *alone.shares, alone.again, *alone.batches)):
        return {"not_compared": "with one replica, it updates other variables"}
    if _apart(_vector(replicas, 1), _vector(alone.begin, 1)) > _EQUAL:
        return {"not_compared": "its variables begin with other values in another process: set a seed"}
    found, again, first = map(_vector, (replicas, alone.again, alone.batches[0]))
    mean = sum(map(_vector, alone.batches)) / len(alone.batches)
    whole = _vector(alone.at_once) if alone.at_once.keys() == replicas.keys() else mean
    sum_ = sum(map(_vector, alone.shares)) if alone.shares else mean
    if not mean.any() or not sum_.any():
        return {"not_compared": "the gradients of one device are zero"}
    return {
        "stretch": _along(found, mean),
        "stretches": _stretches(replicas, alone),
        "stretch_noise": abs(_along(again, first) - 1),
        "deviation": _apart(found, mean),
        "of_shares": _apart(found, _along(found, sum_) * sum_),
        "of_whole": _apart(found, _along(found, whole) * whole),
        "noise": _apart(again, first),
    }


def _stretches(replicas: Gradients, alone: OneDevice) -> List[float]:
    """How many times the one device's each variable's gradient is, if it has that direction and is not random."""
    found = []
    for number, (gradient, _) in replicas.items():
        first, *more = (one[number][0].astype("float64") for one in alone.batches)
        mean = sum(more, first) / len(alone.batches)
        times = _along(gradient, mean)
        apart = max(_apart(gradient, times * mean), _apart(alone.again[number][0], first))
        if mean.size >= _ENOUGH and mean.any() and apart < _STRAIGHT:
            found.append(times)
    return found


def _sizes(gradients: Gradients) -> Dict[int, int]:
    return {number: before.size for number, (_, before) in gradients.items()}


def _vector(gradients: Gradients, part: int = 0) -> Any:
    return np.concatenate([gradients[number][part] for number in sorted(gradients)]).astype("float64")


def _along(one: Any, other: Any) -> float:
    return float(one @ other / max(other @ other, 1e-30))


def _apart(one: Any, other: Any) -> float:
    return float(np.linalg.norm(one - other) / max(np.linalg.norm(other), 1e-30))
