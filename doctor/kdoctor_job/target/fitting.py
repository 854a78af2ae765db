"""The arguments that the job passes to ``fit`` besides its data."""

from __future__ import annotations

import difflib
import math
import operator
from typing import Any, List, Mapping, Optional

import tensorflow as tf

from kdoctor_job.target.callbacks import numbers_read, why_it_raises
from kdoctor_job.target.data import Data, Facts
from kdoctor_job.target.parts import PartError, call, describe_kind

PART = "arguments of fit"
_EXAMINED = (
    "class_weight",
    "sample_weight",
    "validation_data",
    "validation_split",
    "validation_batch_size",
    "validation_steps",
    "batch_size",
    "steps_per_epoch",
)
_UNEXAMINED = ("callbacks", "validation_freq")
"""Callbacks may write files, and another schedule of validations changes nothing in one epoch."""
_HARMLESS = ("epochs", "initial_epoch", "shuffle", "verbose")


class FitArguments:
    """The arguments, and the validation data that they name."""

    def __init__(self, given: Any, **offered: Any) -> None:
        """Read the arguments.

        Args:
            given: their values by name, a function that returns them, or None.
            offered: arguments of that function, if it has parameters of these names.

        Raises:
            PartError: ``fit`` does not have them, or they contradict each other.
        """
        if callable(given):
            given = call(PART, given, **offered)
        if given is not None and not isinstance(given, Mapping):
            raise PartError(PART, f"they are {describe_kind(given)}, expected a dictionary of arguments by name")
        self._values = {name: value for name, value in dict(given or {}).items() if value is not None}
        known = (*_EXAMINED, *_UNEXAMINED, *_HARMLESS)
        for name in self._values:
            if name not in known:
                near = "".join(
                    f"; did you mean {one!r}?" for one in difflib.get_close_matches(name, (*known, "strategy"), 1)
                )
                raise PartError(PART, f"fit takes no {name!r}{near}", f"Name arguments of fit: {', '.join(known)}.")
        epochs, first = self.number("epochs", 1), self._values.get("initial_epoch", 0)
        if epochs is not None and isinstance(first, int) and first >= epochs:
            fix = "epochs counts those before initial_epoch, too: make it larger."
            raise PartError(PART, f"epochs is {epochs}, and initial_epoch is {first}: fit trains nothing", fix)
        if {"class_weight", "sample_weight"} <= self._values.keys():
            raise PartError(PART, "fit takes either class_weight or sample_weight")
        self._validation: Any = self._values.get("validation_data")
        self.validation: List[Any] = []
        """Batches of the validation data; the last one may be shorter."""

    @property
    def names(self) -> List[str]:
        """The given arguments that the copies are trained with."""
        return [name for name in _EXAMINED if name in self._values]

    def number(self, name: str, default: Optional[int] = None) -> Optional[int]:
        """The value of ``batch_size``, ``steps_per_epoch`` or another number."""
        value = self._values.get(name, default)
        if value is None:
            return None
        if isinstance(value, bool) or not hasattr(value, "__index__") or operator.index(value) < 1:
            raise PartError(PART, f"{name} is {value!r}, expected a positive number")
        return operator.index(value)  # also a number of NumPy

    def apply(self, data: Any) -> Any:
        """The data that ``fit`` trains on: with ``sample_weight``, and without what ``validation_split`` takes.

        Raises:
            PartError: the data is not arrays, so ``fit`` refuses these arguments.
        """
        share, weights = self._values.get("validation_split"), self._values.get("sample_weight")
        if share is None and weights is None:
            return data
        name = "sample_weight" if share is None else "validation_split"
        if not isinstance(data, (tuple, list)) or not 1 <= len(data) <= 2 + (weights is None):
            raise PartError(
                PART, f"fit takes {name} with arrays (inputs, targets) only, not with {describe_kind(data)}"
            )
        parts = tuple(data) if weights is None else (*data, weights)
        if share is None:
            return parts
        if not isinstance(share, float) or not 0 < share < 1:
            raise PartError(PART, f"validation_split is {share!r}, expected a number between 0 and 1")
        kept = math.floor(len(tf.nest.flatten(parts)[0]) * (1 - share))
        if self._validation is None:
            self._validation = tf.nest.map_structure(lambda leaf: leaf[kept:], parts)
        return tf.nest.map_structure(lambda leaf: leaf[:kept], parts)

    def read_validation(self, steps: int, *, own: bool) -> Optional[str]:
        """Read the first batches of the validation data, and one like its last.

        Args:
            steps: how many.
            own: whether a generator may be used up, since nothing follows.

        Returns:
            Why it is not read; None if it is, or there is none.

        Raises:
            PartError: it cannot be read.
        """
        if self._validation is None or not steps:
            return None
        size = self.number("validation_batch_size", self.number("batch_size"))
        data = Data(self._validation, own=own, batch_size=size)
        found = data.examine(steps, None)
        if found.get("problem"):
            fix = "Give fit validation data with at least one batch, whose examples all have one shape."
            raise PartError(PART, f"validation_data: {found['problem']}", fix)
        if found.get("unread"):
            return str(found["unread"])
        limit = self.number("validation_steps")
        if limit is None and found["endless"]:
            fix = "Pass validation_steps to fit, or remove repeat()."
            raise PartError(PART, "validation_data is infinite, and validation_steps is not set: no epoch ends", fix)
        if limit is None and found["kind"] == "generator" and found["endless"] is None:
            return "it has no end within 3 s; if it has none at all, fit needs validation_steps"
        self.validation, final = data.full[:steps], found.get("final_batch")
        is_read_to_its_end = limit is None or limit >= (found.get("batches") or math.inf)
        if final and final != found["batch"] and is_read_to_its_end:
            self.validation.append(tf.nest.map_structure(lambda leaf: leaf[:final], self.validation[-1]))
        return None

    def of_copies(self) -> Facts:
        """Arguments for ``fit`` of a copy, except the batches of ``validation_data``."""
        return {name: self._values[name] for name in ("class_weight",) if name in self._values}

    def try_callbacks(self, model: Any, schedule: Optional[str]) -> None:
        """Find out which callbacks would end the job after its first steps.

        Raises:
            PartError: one would.
        """
        for one in self.callbacks:
            found = why_it_raises(one, model, schedule)
            if found:
                raise PartError(PART, *found)

    @property
    def callbacks(self) -> List[Any]:
        """The callbacks."""
        given = self._values.get("callbacks", [])
        return list(given) if isinstance(given, (list, tuple)) else [given]

    @property
    def monitored(self) -> Optional[Facts]:
        """The callback of each number that one needs, or that decides; None if own callbacks may add numbers."""
        read = [(type(one).__name__, numbers_read(one)) for one in self.callbacks]
        if any(names is None for _, names in read):
            return None
        deciding = [one for one in self.callbacks if getattr(one, "save_best_only", True)]
        found = {one.monitor: type(one).__name__ for one in deciding if isinstance(getattr(one, "monitor", None), str)}
        return {**found, **{name: callback for callback, names in read for name in sorted(names or ())}}

    def of_job(self) -> Facts:
        """Arguments for ``fit`` of the job itself, on data that ``apply`` returned."""
        names = (
            "class_weight",
            "validation_batch_size",
            "validation_steps",
            "validation_freq",
            "initial_epoch",
            "shuffle",
        )
        given = {name: self._values[name] for name in names if name in self._values}
        return given if self._validation is None else {**given, "validation_data": self._validation}
