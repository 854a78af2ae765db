"""Compares the job on all replicas with one device: with its own optimizer, with SGD, and in ``evaluate``."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Callable, List, Mapping, Optional, Tuple

import numpy as np

from kdoctor_job.target import masks, measures
from kdoctor_job.target.cloning import CopyError
from kdoctor_job.target.copies import Setup
from kdoctor_job.target.evaluating import Facts, compare_evaluations, final_batches, is_equal, leaf
from kdoctor_job.target.layers import layers_of
from kdoctor_job.target.measures import Difference, Logs, differ, named_as
from kdoctor_job.target.options import BUILT_LATE, CLIPS, UNSET, Option, optimizers_in, optimizers_of
from kdoctor_job.target.parts import describe, is_out_of_memory, keras_of
from kdoctor_job.target.scales import hides_scale
from kdoctor_job.target.shares import is_step_of_whole_batch, of_whole_batch
from kdoctor_job.target.trials import SpentError, Trained, Trials

FRACTION = 0.1
"""An option is correct if the difference from one device is at most this share of what the option changes there, and
the cause if the difference without it is at most this share."""
_NAMES_SHOWN = 6
_FEWEST_STEPS = 2
"""Where rounding decides the weights, this number of steps is compared."""


class Comparison:
    """The comparisons of one job; each notes its facts by the names of ``JobTraining``'s fields."""

    def __init__(
        self,
        trials: Trials,
        options: List[Option],
        without: Tuple[str, ...],
        known: Mapping[str, Any],
        say: Callable[..., None],
    ) -> None:
        """Prepare the comparisons.

        Args:
            trials: has trained the job on the replicas.
            options: of the job.
            without: options with which it raises, so it is compared without them.
            known: facts about the job's options and random layers.
            say: notes facts.
        """
        self._trials = trials
        self._options = [option for option in options if option.name not in without]
        self._without = without
        self._noted: List[Facts] = list(known.get("options", ()))
        self._tried: List[Facts] = []
        """The options without which the job was compared, whether they are noted or not."""
        self._stilled: List[str] = list(known.get("stilled", ()))
        self._say = say
        self._is_decided = True
        """Whether the weights of the job's own optimizer show anything."""
        self._precise, self._may_be_precise = False, trials.can_be_precise
        """Whether the copies compute in float64, because rounding may have made a difference."""
        self._order = 1
        """Of the training whose difference is rounding: another order of the examples, or only other last bits."""
        self._cause: Optional[str] = None
        """What is computed from a whole batch at once, if the weights of the job's own optimizer differ."""
        self._starts_alike = self._equal_slots = False
        """Whether the variables of the job's own optimizer are those of one device, before the steps and after."""
        self._losses: Facts = {}
        """Those of the comparison that decides, with the job's own optimizer."""
        model = trials.mirrored
        made = list(optimizers_in(keras_of(model), model).values())
        # A train_step may use other optimizers than the one that compile() makes by default.
        self._optimizers = [one for one in made if int(one.iterations.numpy()) > 0] or made

    def compare_own(self, first: Optional[Trained] = None) -> None:
        """With the job's own optimizer and options, and without random numbers.

        Args:
            first: the job's own first steps. If one device takes the same, they are not taken again.
        """
        optimizer = ", ".join(dict.fromkeys(type(optimizers_of(one)[-1]).__name__ for one in self._optimizers))
        facts: Facts = {"optimizer": optimizer, "without": list(self._without)}
        try:
            alone, mirrored, reordered, found = self._compared(self._setup(), first)
        except Exception as error:
            if is_out_of_memory(error) and self._trials.cut():
                self._say(rows=self._trials.rows)
                self.compare_own()
            elif self._precise:  # the job's own code may not take float64
                self._precise = self._may_be_precise = False
                self.compare_own()
            else:
                self._say(own=dict(facts, not_compared=_reason(error)))
            return
        if found and (found.rounded or not found.deviation <= self._limit) and self._still_more():
            self.compare_own()
            return
        if found and found.rounded_share > measures.MOSTLY and len(self._trials.batches) > _FEWEST_STEPS:
            # Rounding grows with each step.
            self._trials.batches = self._trials.batches[:_FEWEST_STEPS]
            self._say(steps=_FEWEST_STEPS)
            self.compare_own()
            return
        facts.update(_logs(mirrored, alone, reordered), precise=self._precise)
        if found is None:
            self._say(own=dict(facts, not_compared=self._unmoved(alone)))
            return
        self._is_decided = found.rounded_share <= measures.MOSTLY
        self._starts_alike = _starts_alike(alone, mirrored)
        self._keep_decisive(alone, mirrored)
        self._say(own=dict(facts, **_facts(found)))
        if self._is_decided and not found.deviation <= self._limit:
            self._cause = self._find_cause()
        if self._cause in ("outputs", "layers"):
            return
        blamed = self._find_option(alone, reordered, found) or self._find_several(found)
        if blamed:
            out, rest = blamed
            self._without = (*self._without, *out)
            self._cause = None
            self._say(own=dict(facts, without=list(self._without), **rest), of_whole_batch=None)

    def _compared(
        self, setup: Setup, first: Optional[Trained]
    ) -> Tuple[Trained, Trained, List[Trained], Optional[Difference]]:
        """Steps on one device, on the replicas, and on one device with other orders of the examples, if needed."""
        alone = self._trials.on_one_device(setup)
        reordered: List[Trained] = []
        mirrored = self._on_replicas(setup, alone, first)
        found = self._difference(alone, mirrored, reordered)
        clips = any(option.name == CLIPS for option in self._options)
        if found and self._wants_float64(found.deviation):
            self._precise = True
            return self._compared(self._setup(), None)
        if found and (clips or not found.deviation <= self._limit or measures.differ(mirrored.logs, alone.logs)):
            reordered.append(self._trials.on_one_device(setup, order=1))
            found = self._difference(alone, mirrored, reordered)
        if found and not found.deviation <= self._limit:
            reordered.append(self._trials.on_one_device(setup, order=2))
            found = self._difference(alone, mirrored, reordered)
        if found and found.deviation > self._limit and not (self._precise and found.deviation > measures.TOLERANCE):
            # Rounding turns a unit on or off whose input is about zero; not the same one in another order.
            other = self._trials.on_replicas(setup, order=1)
            again = self._difference(reordered[0], other, [alone, *reordered[1:]])
            found = again if again and again.deviation < found.deviation else found
        if found and found.rounded:
            # A job may use the order, as pairs of neighbors do. Then other last bits and random numbers change nothing.
            bits = [self._trials.on_one_device(setup, order=-1)]
            exact = self._difference(alone, mirrored, bits)
            if exact and exact.noise <= measures.QUIET:
                reordered, found, self._order = bits, exact, -1
        return alone, mirrored, reordered, found

    @property
    def _limit(self) -> float:
        """The largest difference that counts as equal."""
        return measures.QUIET if self._precise else measures.TOLERANCE

    def _difference(self, alone: Trained, other: Trained, reordered: List[Trained]) -> Optional[Difference]:
        weights = (alone.started, alone.weights, other.copies, [one.weights for one in reordered])
        return measures.compare(other.names, *weights, kinds=alone.kinds, limit=self._limit)

    def _wants_float64(self, deviation: float) -> bool:
        """Whether it has to be computed in float64, too, because rounding in float32 may have made the difference."""
        return deviation > measures.QUIET and self._may_be_precise and not self._precise

    def _setup(self, *without: str) -> Setup:
        return Setup(without=(*self._without, *without), still=True, precise=self._precise)

    def _on_replicas(self, setup: Setup, alone: Trained, first: Optional[Trained]) -> Trained:
        found = self._difference(alone, first, []) if first else None
        if first and found and found.deviation <= self._limit and not differ(*_named(first, alone)):
            return first
        return self._trials.on_replicas(setup)

    def _still_more(self) -> bool:
        """Have the job's own layers that draw random numbers run as at inference, too; whether that is possible."""
        trials, copier = self._trials, self._trials.copier
        if copier.drawing:
            return False
        layers = layers_of(trials.mirrored)
        copier.drawing = tuple(place for place in copier.drawn if masks.takes_training(layers[place]))
        self._say(stilled=[*self._stilled, *map(copier.name_of, copier.drawing)])
        return bool(copier.drawing)

    def _find_option(
        self, alone: Trained, reordered: List[Trained], found: Difference
    ) -> Optional[Tuple[Tuple[str, ...], Facts]]:
        """The option without which the replicas match one device, and the facts of that comparison."""
        for option in self._options:
            clips = option.name == CLIPS
            if not clips and (found.deviation <= self._limit or (option.name == BUILT_LATE and self._starts_alike)):
                continue
            setup = self._setup(option.name)
            facts: Facts = {"name": option.name, "value": option.value}
            try:
                alone_without = self._trials.on_one_device(setup)
                effect = self._difference(alone, alone_without, reordered)
                facts["effect"] = effect.deviation if effect else None
                if clips and (effect is None or effect.deviation <= self._limit):
                    self._note_option(facts)  # no gradient reached the limit
                    continue
                facts["deviation"] = found.deviation
                if effect and found.deviation <= FRACTION * min(effect.deviation, FRACTION):
                    self._note_option(facts)
                    continue
                mirrored, again, rest = self._rest(setup, alone_without, found)
            except (CopyError, SpentError):
                continue
            facts["without"] = rest.deviation if rest else None
            self._tried.append(facts)
            is_cause = rest is not None and rest.deviation <= FRACTION * found.deviation
            if is_cause or option.name not in UNSET:
                self._note_option(facts)
            if rest and is_cause:
                self._keep_decisive(alone_without, mirrored)
                return (option.name,), {**_logs(mirrored, alone_without, again), **_facts(rest)}
        return None

    def _rest(
        self, setup: Setup, alone: Trained, found: Difference
    ) -> Tuple[Trained, List[Trained], Optional[Difference]]:
        """A training on the replicas, one device with another order if needed, and what is left of the difference."""
        mirrored = self._trials.on_replicas(setup)
        again: List[Trained] = []
        rest = self._difference(alone, mirrored, again)
        if rest and not rest.deviation <= min(FRACTION * found.deviation, self._limit):
            again.append(self._trials.on_one_device(setup, order=self._order))
            rest = self._difference(alone, mirrored, again)
        return mirrored, again, rest if rest and rest.rounded_share <= measures.MOSTLY else None

    def _find_several(self, found: Difference) -> Optional[Tuple[Tuple[str, ...], Facts]]:
        """The options without all of which the replicas match one device. Each is judged without the others."""
        tried = [facts for facts in self._tried if facts["without"] is not None]
        out = tuple(facts["name"] for facts in tried)
        if len(out) < 2:  # noqa: PLR2004 - one alone was tried
            return None
        try:
            setup = self._setup(*out)
            alone = self._trials.on_one_device(setup)
            mirrored, again, rest = self._rest(setup, alone, found)
            if rest is None or not rest.deviation <= FRACTION * found.deviation:
                return None
            for facts in tried:
                others = (name for name in out if name != facts["name"])
                setup = self._setup(*others)
                with_it = self._trials.on_one_device(setup)
                effect, (*_, left) = self._difference(alone, with_it, again), self._rest(setup, with_it, found)
                facts["effect"], facts["deviation"] = (one and one.deviation for one in (effect, left))
                facts["without"] = rest.deviation if left and left.deviation > self._limit else None
        except (CopyError, SpentError):
            return None
        self._noted += [facts for facts in tried if facts not in self._noted and facts["without"] is not None]
        self._say(options=self._noted)
        self._keep_decisive(alone, mirrored)
        return out, {**_logs(mirrored, alone, again), **_facts(rest)}

    def _keep_decisive(self, alone: Trained, mirrored: Trained) -> None:
        self._equal_slots = _equal_slots(alone, mirrored)
        self._losses = {"losses": mirrored.losses, "reference_losses": alone.losses}

    def _find_cause(self) -> Optional[str]:
        trials = self._trials
        replicas = trials.strategy.num_replicas_in_sync
        cause: Optional[str] = trials.apart(lambda: of_whole_batch(trials.alone, trials.batches[0], replicas))
        setup = self._setup()._replace(own=False)
        if cause is None and is_step_of_whole_batch(trials, setup):
            cause = "step"
        self._say(of_whole_batch=cause)
        return cause

    def _note_option(self, facts: Facts) -> None:
        self._noted.append(facts)
        self._say(options=self._noted)

    def evaluate(self) -> None:
        """``evaluate`` with the weights before the training, on an uneven final batch; if it differs, on full ones."""
        trials = self._trials
        if trials.alone is None or trials.mirrored is None:
            return
        trials.reset()
        batch = len(leaf(trials.batches[0]))
        found: List[Facts] = []
        for final in final_batches(batch, trials.strategy.num_replicas_in_sync):
            facts = compare_evaluations(trials, final)
            if "raises" in facts:
                self._say(evaluate_raises=facts["raises"])
                return
            found.append(facts)
            self._say(evaluations=found)
            if is_equal(facts):
                return  # the other batches are full
        if not self._cause:
            self._find_cause()

    def compare_sgd(self) -> None:
        """With SGD, where the job's optimizer or random numbers hide a gradient that is too large."""
        trials = self._trials
        clips = any(option.name == CLIPS for option in self._options if option.name not in self._without)
        hides = partial(hides_scale, keras_of(trials.copier.model), clips=clips, in_slots=self._equal_slots)
        why = next(filter(None, map(hides, self._optimizers)), "")
        if not self._is_decided:
            why = why or "random numbers or rounding decide the weights"
        self._say(scale_hidden=why)
        if not why:
            self._say(**self._losses)
        if not why or self._cause:
            return
        setup = self._setup()._replace(own=False)
        noisy = self._compare_sgd(setup)
        if noisy and len(trials.batches) > 1:
            trials.batches = trials.batches[:1]  # rounding grows with each step
            self._say(steps=1)
            self._compare_sgd(setup)

    def _compare_sgd(self, setup: Setup) -> bool:
        """Compare these steps; whether another order of the examples changes the weights as much."""
        trials = self._trials
        mirrored = trials.on_replicas(setup)
        alone = trials.on_one_device(setup)
        self._say(losses=mirrored.losses, reference_losses=alone.losses)
        scale = measures.scale_of(alone.started, alone.weights, measures.largest, alone.kinds)
        if scale is None:
            self._say(not_compared=self._unmoved(alone))
            return False
        deviation = measures.max_or_nan(measures.largest(alone.weights, mirrored.copies) / scale)
        self._say(deviation=deviation, precise=self._precise, stretch=_stretch(alone, mirrored))
        if deviation < measures.QUIET:
            return False
        if self._wants_float64(deviation):
            self._precise = True
            try:
                return self._compare_sgd(setup._replace(precise=True))
            except Exception:  # the job's own code may not take float64
                self._precise = self._may_be_precise = False
        # Replicas see other rows of a batch, so numbers that are drawn by row differ as in another order.
        again = trials.on_one_device(setup, order=self._order)
        noise = measures.max_or_nan(measures.largest(alone.weights, again.copies) / scale)
        self._say(noise=noise, stretch_noise=_stretch(alone, again))
        noisy = self._limit < deviation <= noise * measures.BEYOND_ROUNDING
        if deviation > self._limit and not noisy:
            other = trials.on_replicas(setup, order=self._order)
            left = measures.max_or_nan(measures.largest(again.weights, other.copies) / scale)
            if left <= self._limit:
                self._say(deviation=left)
                return False
            self._find_cause()
        return noisy

    def _unmoved(self, alone: Trained) -> str:
        changes = measures.max_or_nan(measures.largest(alone.started, alone.copies))
        why = "no weight changes" if changes == 0 else "the weights are not finite, even on one device"
        steps = len(self._trials.batches)
        return f"in {steps} {'step' if steps == 1 else 'steps'} {why}"


def why_incomparable(model: Any) -> Optional[str]:
    """Why one device cannot compute what the replicas of the job's model compute; None if it can."""
    kept = [layer.name for layer in layers_of(model) if getattr(layer, "stateful", False) is True]
    if kept:
        return f"{', '.join(kept[:_NAMES_SHOWN])} keeps the state of each row of a batch, and replicas have other rows"
    return None


def _stretch(alone: Trained, other: Trained) -> Optional[float]:
    return measures.stretch(*map(alone.of_trainable, (alone.started, alone.weights, other.weights)))


def _starts_alike(alone: Trained, mirrored: Trained) -> bool:
    """Whether the optimizers have the same variables before the first step, so that none is built late."""
    return len(alone.slots) == len(mirrored.slots) and all(
        one.kind == other.kind and np.array_equal(one.started, other.started)
        for one, other in zip(alone.slots, mirrored.slots)
    )


def _equal_slots(alone: Trained, mirrored: Trained) -> bool:
    """Whether the variables of the optimizers changed, and as on one device. Each kind has another size."""
    if not _starts_alike(alone, mirrored):
        return False
    found = []
    for kind in {slot.kind for slot in alone.slots}:
        pairs = [pair for pair in zip(alone.slots, mirrored.slots) if pair[0].kind == kind]
        started, reference = [one.started for one, _ in pairs], [one.ended for one, _ in pairs]
        copies = [[other.ended] for _, other in pairs]
        found.append(measures.compare([kind] * len(pairs), started, reference, copies, []))
    moved = [one for one in found if one]
    return bool(moved) and all(one.deviation <= measures.TOLERANCE for one in moved)


def _logs(mirrored: Trained, alone: Trained, reordered: List[Trained]) -> Facts:
    reordered_logs = reordered[0].logs if reordered else {}
    logs, reference_logs = _named(mirrored, alone)
    return {"logs": logs, "reference_logs": reference_logs, "reordered_logs": reordered_logs}


def _named(mirrored: Trained, alone: Trained) -> Tuple[Logs, Logs]:
    """What both trainings report, by the names of one device."""
    return named_as(mirrored.logs, alone.logs), alone.logs


def _facts(found: Difference) -> Facts:
    facts = found._asdict().items()
    return {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in facts}


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, (CopyError, SpentError)) else describe(error)
