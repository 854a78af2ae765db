"""Trains a copy of the job's model for a few steps, as the job does, and has it compared with one device."""

from __future__ import annotations

import traceback
from typing import Any, Callable, Collection, Dict, Iterable, List, Optional, Tuple

import numpy as np
import tensorflow as tf

from kdoctor_job.target import masks, measures
from kdoctor_job.target.batches import dataset
from kdoctor_job.target.cloning import CopyError
from kdoctor_job.target.comparing import Comparison, why_incomparable
from kdoctor_job.target.copies import Copier, NotBuiltError, Setup
from kdoctor_job.target.epoch import Epoch
from kdoctor_job.target.evaluating import leaf
from kdoctor_job.target.layers import random_layers
from kdoctor_job.target.loss_input import probabilities_read
from kdoctor_job.target.model import is_compiled, is_real
from kdoctor_job.target.options import (
    BUILT_LATE,
    GRADIENTS,
    NO_CALL,
    SPARSE,
    STATE,
    UNSET,
    Option,
    changing_gradients,
    optimizers_of,
    options_of,
    own_state,
)
from kdoctor_job.target.outside import Outside
from kdoctor_job.target.parts import PartError, describe, is_default, is_out_of_memory, keras_of, replica_devices
from kdoctor_job.target.rehearsal import why_ended
from kdoctor_job.target.trials import Phase, SpentError, Trained, Trials
from kdoctor_target.training.replicas import read_copies

Facts = Dict[str, Any]

_NAMES_SHOWN = 6

COMPARED = ("MirroredStrategy", "OneDeviceStrategy", "_DefaultDistributionStrategy")
"""Single-process strategies, under which a copy can be trained here."""


class JobTrainer:
    """Trains copies of the model on the same batches."""

    def __init__(
        self,
        model: Any,
        trials: Trials,
        epoch: Callable[[], Epoch],
        note: Callable[[Facts], None],
        *,
        nothing_follows: bool = False,
    ) -> None:
        self._model = model
        self._trials = trials
        self._epoch = epoch
        self._note = note
        self._nothing_follows = nothing_follows
        self._reported: Collection[str] = ()
        self.facts: Facts = {"steps": len(trials.batches)}
        """By the names of ``JobTraining``'s fields."""

    def run(self, phase: Phase) -> None:
        """Train with the job's optimizer, then compare with one device."""
        reason = self._why_not()
        if reason:
            self._say(not_run=reason)
            return
        if hasattr(keras_of(self._model), "config"):
            keras_of(self._model).config.disable_traceback_filtering()  # of this thread; see raised_before_steps
        outside = Outside(self._model)
        if outside.unkept:
            self._say(not_run=f"training a copy could have an effect outside of it: {outside.unkept}")
            return
        try:
            self._train(phase)
            self._rehearse()
        finally:
            changed = outside.restore()
        if changed:
            names = ", ".join(changed[:_NAMES_SHOWN])
            reason = f"a step changes {names} outside of the model, which kdoctor restored; keep it in the model"
            self.facts = {"steps": 0}
            self._say(not_run=reason)

    def _rehearse(self) -> None:
        """Call the hooks of the callbacks for two epochs, if the copies have trained."""
        fit, names = self._trials.fit, [name for name in self._reported if not name.startswith("val_")]
        if fit is None or not names:
            return
        validates = {"validation_data", "validation_split"} & {*fit.names}
        numbers = [*names, *(f"val_{name}" for name in names if validates)]
        ended = (why_ended(one, self._trials.mirrored, numbers, own=self._nothing_follows) for one in fit.callbacks)
        found = next(filter(None, ended), None)
        if found:
            self._say(ended_by=found)

    def _train(self, phase: Phase) -> None:
        phase("build")
        self._trials.phase = phase
        try:
            trained, without = self._train_own(phase)
        except NotBuiltError as error:
            if self._built_by_fit(str(error)):
                self._train(phase)
            return
        except (CopyError, SpentError) as error:
            self._say(not_run=str(error))
            return
        except Exception as error:
            self._say_error(error)
            return
        finally:
            self._say(memory=_memory(self._trials.strategy))
        copy, self._reported = self._trials.mirrored, trained.logs
        known = options_of(self._model)
        built = [option for option in options_of(copy) if option.name not in dict(known)]
        self._say(options_when_built=dict(built))
        own, layers = random_layers(self._model), random_layers(copy)
        names = [layer.name for layer in (own if len(own) == len(layers) else layers)]
        self._say(**self._first_steps(copy, trained), stilled=names)
        if self._trials.strategy.num_replicas_in_sync == 1:
            return
        phase("reference")
        copier = self._trials.copier
        copier.drawn = masks.find_drawing(copy, self._trials.strategy, self._trials.batches[0])
        found = masks.draw(copy, self._trials.strategy, self._trials.batches[0], names)
        for place, kind in copier.drawn.items():
            found[kind] = [*found.get(kind, ()), copier.name_of(place)]
        self._say(**found, draws_alike=self._trials.draws_alike, numpy_draws=self._trials.numpy_draws)
        reason = why_incomparable(self._model)
        if reason:
            self._say(not_compared=reason)
            return
        # Building the optimizer changes what it copies from the weights, so it is tried last, if the weights differ.
        used = {
            STATE: ", ".join(list(own_state(copy))[:_NAMES_SHOWN]),
            GRADIENTS: ", ".join(changing_gradients(copy)[:_NAMES_SHOWN]),
            SPARSE: ", ".join(self._trials.sparse[:_NAMES_SHOWN]),
        }
        unset = [Option(name, used.get(name, name)) for name in UNSET if used.get(name, name)]
        options = [*built, *known, *unset]
        comparison = Comparison(self._trials, options, without, self.facts, self._say)
        try:
            comparison.compare_own(trained)
            comparison.evaluate()
            comparison.compare_sgd()
        except Exception as error:
            self._say(not_compared=str(error) if isinstance(error, (CopyError, SpentError)) else describe(error))

    def _say_error(self, error: BaseException) -> None:
        before = any(frame.name == "_symbolic_build" for frame in traceback.extract_tb(error.__traceback__))
        alone = None if is_out_of_memory(error) else self._trains_alone()
        share = self._trials.strategy.num_replicas_in_sync
        trains_share = self._trains_alone(share) if alone and share > 1 else None
        self._say(problem=describe(error), raised_before_steps=before, trains_alone=alone, trains_share=trains_share)

    def _trains_alone(self, shares: int = 1) -> Optional[bool]:
        try:
            self._trials.on_one_device(Setup(), part=(0, shares))
        except (CopyError, SpentError):
            return None
        except Exception as error:
            return None if is_out_of_memory(error) else False
        return True

    def _built_by_fit(self, reason: str) -> bool:
        """Have ``fit`` build a copy that cannot be called, which the others are copies of; whether that is possible."""
        trials = self._trials
        try:
            with trials.strategy.scope():
                made = trials.copier.make()
            made.fit(dataset(trials.batches[:1], is_static=trials.is_static), epochs=1, verbose=0)
        except CopyError:
            self._say(not_run=reason)
        except Exception as error:
            self._say_error(error)
        else:
            trials.copier = Copier(made, len(trials.batches), is_trained=True)
            return True
        return False

    def _examples(self, setup: Setup, phase: Phase) -> Facts:
        """How many examples the data as it is has, and how many of them ``fit`` trains."""
        try:
            epoch = self._epoch()
            trained = self._trials.on_its_data(epoch, setup, phase)
            return {"examples": epoch.examples(), "examples_trained": trained, **self._final(), **self._of_odd()}
        except (CopyError, PartError, SpentError) as error:
            return {"examples_unread": str(error)}
        except Exception as error:
            return {"examples_problem": describe(error)}

    def _final(self) -> Facts:
        """What a step with a batch of the final one's size makes NaN or infinite; nothing if it is full."""
        if not 0 < self._trials.final < len(leaf(self._trials.batches[0])):
            return {}
        try:
            cut = tf.nest.map_structure(lambda leaf: leaf[: self._trials.final], self._trials.batches[0])
            losses = self._trials.go_on([self._trials.batches[0], cut])
        except Exception as error:
            return {"final_problem": describe(error)}
        lost = ["the loss that fit reports"] if None in losses else []
        return {"final_nonfinite": [*lost, *self._nonfinite(self._trials.mirrored)]}

    def _of_odd(self) -> Facts:
        """The error of a step with a batch whose shapes differ from those of the others; nothing if it trains."""
        if self._trials.odd is None:
            return {}
        name, batch = self._trials.odd
        try:
            self._trials.go_on([batch])
        except Exception as error:
            return {"odd_problem": f"{name} has other shapes: {describe(error)}"}
        return {}

    def _train_own(self, phase: Phase) -> Tuple[Trained, Tuple[str, ...]]:
        """The first steps as the job takes them, or without the options with which they fail.

        Raises:
            Exception: they fail without any option as well.
        """
        found = self._examples(Setup(), phase)
        try:
            trained = self._trials.on_replicas(Setup(), phase)
        except (CopyError, SpentError):
            raise
        except Exception as error:
            options = options_of(self._model)
            if self._has_own_step:
                options.append(Option(BUILT_LATE, BUILT_LATE))
            if type(self._model).call is keras_of(self._model).Model.call:
                options.append(Option(NO_CALL, NO_CALL))
            names = tuple(option.name for option in options)
            if not names or self._problem(names) is not None:
                raise
            failed = error
        else:
            self._say(**found)
            return trained, ()
        others = {name: tuple(other for other in names if other != name) for name in names}
        problems = {name: self._problem(others[name]) if others[name] else failed for name in names}
        without = tuple(name for name, problem in problems.items() if problem) or names
        self._say(
            options=[
                {"name": option.name, "value": option.value, "problem": describe(problems[option.name] or failed)}
                for option in options
                if option.name in without
            ]
        )
        self._say(**self._examples(Setup(without=without), phase))
        return self._trials.on_replicas(Setup(without=without), phase), without

    @property
    def _has_own_step(self) -> bool:
        return type(self._model).train_step is not keras_of(self._model).Model.train_step

    def _problem(self, without: Tuple[str, ...]) -> Optional[Exception]:
        try:
            self._trials.on_replicas(Setup(without=without))
        except Exception as error:
            return error
        return None

    def _first_steps(self, copy: Any, trained: Trained) -> Facts:
        later = sorted(trained.seconds[1:])
        return {
            "own_losses": trained.losses,
            "of_one_replica": of_one_replica(self._trials.strategy, _untrained(copy)),
            "nonfinite": self._nonfinite(copy),
            "frozen": not copy.trainable_variables and not self._has_own_step,
            "unmoved": _unmoved(copy, trained),
            "step_s": later[len(later) // 2] if later else None,
            **probabilities_read(copy, self._trials.batches[0], self._trials.strategy.num_replicas_in_sync),
        }

    def _nonfinite(self, copy: Any) -> List[str]:
        return [
            getattr(one, "path", one.name)
            for one in copy.variables
            if is_real(one)
            and not all(np.isfinite(part.numpy()).all() for part in read_copies(self._trials.strategy, one))
        ]

    def _why_not(self) -> Optional[str]:
        kind = type(self._trials.strategy).__name__
        if kind not in COMPARED:
            return f"copies cannot be trained in one process under {kind}"
        if not is_compiled(self._model):
            return "the model is not compiled: compile it where it is built, or examine your loop with --loop"
        if not self._trials.batches:
            return "no steps were requested (--steps 0), or no batch was read"
        return None

    def _say(self, **facts: Any) -> None:
        self.facts.update(facts)
        self._note(self.facts)


def _unmoved(model: Any, trained: Trained) -> Optional[List[str]]:
    """The trainable variables with their first value; None if the optimizer may not have updated any yet."""
    values = zip(trained.names, trained.kinds, trained.started, trained.weights)
    found = [name for name, kind, started, now in values if not kind and np.array_equal(started, now)]
    optimizers = optimizers_of(getattr(model, "optimizer", None))  # one that wraps another leaves out steps
    collects = len(optimizers) > 1 or any(getattr(one, "gradient_accumulation_steps", None) for one in optimizers)
    return None if collects and len(found) == trained.kinds.count("") else found


def _untrained(model: Any) -> Iterable[Any]:
    return {id(one): one for one in (*model.non_trainable_variables, *own_state(model).values())}.values()


def of_one_replica(strategy: Any, variables: Iterable[Any]) -> List[str]:
    """Variables that differ between the replicas, and are not read and saved as the mean or the sum of all."""
    found = []
    for one in variables:
        parts = [part.numpy() for part in read_copies(strategy, one)]
        if len(parts) < 2 or not np.issubdtype(np.asarray(parts[0]).dtype, np.floating):  # noqa: PLR2004
            continue
        apart = max(float(np.max(np.abs(part - parts[0]), initial=0)) for part in parts)
        read = np.asarray(one.numpy())
        aggregates = (np.mean(parts, axis=0), np.sum(parts, axis=0))
        if apart > measures.QUIET * float(np.max(np.abs(parts))) and not any(
            np.max(np.abs(read - value)) < apart / 10 for value in aggregates
        ):
            found.append(getattr(one, "path", one.name))
    return found


def _memory(strategy: Any) -> List[Facts]:
    """Peak and limit of the memory of each GPU with a replica.

    The peak covers the whole process: it is the user's, and is not reset.
    """
    listed = tf.config.list_logical_devices("GPU") if is_default(strategy) else []
    gpus = [name for name in (*replica_devices(strategy), *(gpu.name for gpu in listed)) if "GPU" in name]
    if not gpus:
        return []
    from tensorflow.python.client import device_lib

    limits = {one.name: one.memory_limit for one in device_lib.list_local_devices()}
    found = []
    for name in gpus:
        short = "/device:" + name.rpartition("device:")[2]
        peak = tf.config.experimental.get_memory_info(short.replace("/device:", ""))["peak"]
        if short in limits:
            found.append({"device": short, "peak_bytes": int(peak), "limit_bytes": int(limits[short])})
    return found
