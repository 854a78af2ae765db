"""The phases of a training (trace, first step, step 2 and so on) and the time of each step."""

from __future__ import annotations

import functools
import sys
import time
from typing import Any, Callable, Dict, List, Optional

from kdoctor_target.runner.case import Case
from kdoctor_target.runner.phases import BETWEEN
from kdoctor_target.training.regression import EPOCHS


class Steps:
    """Reports which step a training is in.

    A framework traces a step's Python code when it first runs it, and again for a batch of a different shape.
    :meth:`watch_tracing` wraps that code, so that tracing can be distinguished from running.
    """

    def __init__(self, case: Case, traces: int = 1) -> None:
        """Begin at no step.

        Args:
            case: the case that trains.
            traces: how often one trace calls the function that :meth:`watch_tracing` wraps: once for each replica.
        """
        self.seconds: List[float] = []
        self._case = case
        self._traces = traces
        self._left = traces
        self._now: Optional[str] = None
        self._started = 0.0
        case.note(steps=0)

    def begin(self) -> None:
        """A step begins; the first one begins with its trace."""
        self._enter(self._name() if self.seconds else "trace")
        self._started = time.perf_counter()

    def end(self) -> None:
        """The step is finished."""
        self.seconds.append(time.perf_counter() - self._started)
        self._case.note(steps=len(self.seconds))
        self._enter(BETWEEN)

    def watch_tracing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, which also reports when a trace enters it and when the last replica's trace leaves it."""

        @functools.wraps(function)
        def traced(*args: Any, **kwargs: Any) -> Any:
            self._enter("trace")
            result = function(*args, **kwargs)
            self._left -= 1
            if not self._left:
                self._left = self._traces
                self._enter(self._name())
            return result

        tensorflow = sys.modules.get("tensorflow")
        # AutoGraph must not convert the reporting code.
        return tensorflow.autograph.experimental.do_not_convert(traced) if tensorflow else traced

    def _name(self) -> str:
        return f"step {len(self.seconds) + 1}" if self.seconds else "first step"

    def _enter(self, phase: str) -> None:
        if phase == self._now:
            return
        # Retracing interrupts a step.
        finished = phase != "trace" or self._now in (None, BETWEEN)
        self._now = phase
        self._case.phase(phase, finished=finished)


def clock(case: Case, keras: Any, wait: Optional[Callable[[Any], Any]] = None) -> Any:
    """A callback that reports and times every step of ``fit``.

    Args:
        case: the case that trains.
        keras: the Keras of the model: ``tf.keras`` or ``keras``.
        wait: waits until a step's results are ready, for frameworks with asynchronous dispatch.
    """

    class Clock(keras.callbacks.Callback):  # type: ignore[misc]  # Keras has no types here
        def __init__(self) -> None:
            super().__init__()
            self._steps: Optional[Steps] = None

        @property
        def seconds(self) -> List[float]:
            return self._steps.seconds if self._steps else []

        def set_model(self, model: Any) -> None:
            super().set_model(model)
            self._steps = Steps(case, traces_of(getattr(model, "distribute_strategy", None)))
            model.train_step = self._steps.watch_tracing(model.train_step)  # used by the function that fit builds next

        def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
            if self._steps:
                self._steps.begin()

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
            if wait:
                wait(logs)
            if self._steps:
                self._steps.end()

        def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002
            self.model.__dict__.pop("train_step", None)

    return Clock()


def step_seconds(seconds: List[float]) -> Dict[str, float]:
    """Seconds of the first step and the median after the first epoch, by the names of ``SmokeCase``'s fields."""
    later = sorted(seconds[len(seconds) // EPOCHS :])
    return {"first_step_s": seconds[0], "step_s": later[len(later) // 2]}


def traces_of(strategy: Any) -> int:
    """How often one trace calls a replica's function: once for each replica of this process."""
    try:
        return max(1, len(strategy.extended.worker_devices))
    except (AttributeError, RuntimeError):
        return 1  # no strategy: None in Keras 3; in Keras 2 the default one, which has no devices
