"""The examination of a job, which leaves the user's process unchanged."""

from __future__ import annotations

import itertools
import random
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Iterator, Optional

import numpy as np
from tensorflow.python.eager import context

from kdoctor_job.target.copies import Copier
from kdoctor_job.target.data import Data, Facts
from kdoctor_job.target.fitting import FitArguments
from kdoctor_job.target.model import examine_model
from kdoctor_job.target.options import options_of
from kdoctor_job.target.parts import PartError, as_model, call, is_model, keras_of, name_of
from kdoctor_job.target.rates import of_schedule
from kdoctor_job.target.strategies import OwnStrategy
from kdoctor_job.target.training import JobTrainer
from kdoctor_job.target.trials import Trials, in_a_thread
from kdoctor_target.runner.case import NotHere

_COLLECTIVE_KEYS = itertools.count(1_000_000, 1_000_000)
"""Where the keys of each examination begin."""


@dataclass
class Job:
    """A model, its data, and the options of their examination."""

    model: Any
    """A model, or a function that makes one."""
    data: Any
    """The data, or a function that makes it."""
    steps: int
    """Training steps of each copy."""
    steps_per_epoch: Optional[int] = None
    batch_size: Optional[int] = None
    """For arrays."""
    budget_s: Optional[float] = None
    """Seconds for the trainings; None for no limit. A training that would exceed it is left out."""
    fit_arguments: Any = None
    """Other arguments of ``fit`` by name, or a function that returns them."""
    own: Optional[OwnStrategy] = None
    """What replaces strategies that the job makes, if anything does."""

    def examine(self, strategy: Any, note: Callable[[Facts], None], phase: Callable[[str], None]) -> None:
        """Examine the job and report facts as they are found, by the names of ``JobRun``'s fields.

        It runs in a separate thread, which leaves the user's strategy scopes and Keras's counters (layer names, seeds)
        alone. Random number generators that all threads share are restored.
        """

        def work() -> None:
            with _random_numbers_kept(), _collective_keys_kept(strategy):
                self._examine(strategy, note, phase)

        in_a_thread(work)

    def _examine(self, strategy: Any, note: Callable[[Facts], None], phase: Callable[[str], None]) -> None:
        facts: Facts = {}

        def say(**more: Any) -> None:
            facts.update(more)
            note(facts)

        try:
            phase("model")
            builder = None if is_model(self.model) else self._builder("model", self.model)
            model = self.model if builder is None else self._first(strategy, builder)
            model = as_model(model, "the model" if builder is None else f"the return value of {name_of(self.model)}")
            backend = keras_of(model).backend.backend()
            if backend != "tensorflow":
                also = f"kdoctor list checklists shows what it trains on {backend}"
                raise NotHere(f"Keras computes with {backend}, and kdoctor examines jobs on TensorFlow ({also})")
            known = examine_model(model, strategy)
            say(model=dict(known, options=dict(options_of(model))))
            phase("data")
            with strategy.scope():
                fit = FitArguments(self.fit_arguments)
            fit.try_callbacks(model, known.get("schedule"))
            data = self._open_data(strategy, fit)
            found = data.examine(self.steps, fit.number("steps_per_epoch", self.steps_per_epoch))
            say(data=found)
            steps = (found.get("steps_per_epoch") or found.get("batches") or 0) * (fit.number("epochs") or 1)
            say(model={**facts["model"], **(of_schedule(model, steps) if steps else {})})
            unread = fit.read_validation(self.steps, own=self.own is not None)
            say(fit_arguments=fit.names, monitored=fit.monitored, validation_unread=unread)
        except PartError as error:
            say(problem=error.record)
            return
        if found.get("problem") or found.get("unread") or found["batch"] % strategy.num_replicas_in_sync:
            reason = found.get("unread") or "its data cannot be trained on"
            say(training={"steps": 0, "not_run": f"nothing was trained: {reason}"})
            return
        batches = data.full[: self.steps]
        trials = Trials(
            Copier(model, len(batches)),
            strategy,
            batches,
            self.budget_s,
            fit,
            data.is_static,
            found.get("final_batch") or 0,
            data.unusual.odd,
        )
        epoch = partial(data.epoch, lambda: fit.apply(self._made(strategy)))
        alone = self.own is not None
        JobTrainer(model, trials, epoch, lambda training: say(training=training), nothing_follows=alone).run(phase)

    def _first(self, strategy: Any, builder: Callable[[], Any]) -> Any:
        """The model that the function makes in the strategy's scope, or as the job calls it if it enters a scope."""
        if self.own is not None:
            self.own.entered = False
        with strategy.scope():
            model = builder()
        return builder() if self.own is not None and self.own.entered else model

    @staticmethod
    def _builder(part: str, function: Any) -> Callable[[], Any]:
        if not callable(function):
            as_model(function, "the model")
        return lambda: call(part, function)

    def _open_data(self, strategy: Any, fit: FitArguments) -> Data:
        own = callable(self.data) and not hasattr(self.data, "__getitem__")
        given = self._made(strategy) if own else self.data
        size = fit.number("batch_size", self.batch_size)
        return Data(fit.apply(given), own=own, batch_size=size, kept=self.own is None)

    def _made(self, strategy: Any) -> Any:
        # In the scope, where tf.distribute.get_strategy() returns the number of replicas for the global batch size.
        with strategy.scope():
            return call("data", self.data)


@contextmanager
def _random_numbers_kept() -> Iterator[None]:
    """Restore the states of Python's, NumPy's and TensorFlow's generators."""
    eager = getattr(context.context(), "_rng", None)  # made by tf.random.set_seed
    state = random.getstate(), np.random.get_state(), eager and eager.getstate()  # noqa: NPY002
    try:
        yield
    finally:
        random.setstate(state[0])
        np.random.set_state(state[1])  # noqa: NPY002
        if eager is not None:
            eager.setstate(state[2])


@contextmanager
def _collective_keys_kept(strategy: Any) -> Iterator[None]:
    """Let the collective operations of the copies have keys that no strategy of this process uses otherwise.

    TensorFlow counts from 100 in each strategy. An operation with the key of another one that has another type of
    numbers fails, also in the job itself after an examination.
    """
    table = getattr(getattr(strategy.extended, "_collective_keys", None), "_instance_key_table", {})
    kept = {group: dict(keys) for group, keys in table.items()}
    first = next(_COLLECTIVE_KEYS)
    for keys in table.values():
        keys.update(dict.fromkeys(keys, first))
    try:
        yield
    finally:
        for group, keys in kept.items():
            table[group].update(keys)
