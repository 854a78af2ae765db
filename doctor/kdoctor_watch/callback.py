"""The Keras callback, and the context manager for custom loops."""

from __future__ import annotations

import atexit
import contextlib
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kdoctor.engine.report import Report
from kdoctor.report.formats import render
from kdoctor_watch.publish import LOGGER, WatchFinding, brief
from kdoctor_watch.recorder import Recorder
from kdoctor_watch.session import Session
from kdoctor_watch.settings import CHECKPOINT, Settings
from kdoctor_watch.variables import Input

if TYPE_CHECKING:
    from typing_extensions import Self


class WatchError(RuntimeError):
    """A watched custom loop should stop, because a check failed and ``on_error`` is ``"stop"``."""

    __module__ = "kdoctor"


class Watch:
    """Watches a training while it runs. Use it as a Keras callback, or as a context manager around a custom loop.

    It compares the replicas' variables bit by bit, finds the first NaN, and notices stalls, slower steps, growing
    memory, waiting for data, idle or throttled GPUs and Xids in the kernel log. ``kdoctor explain watch.finite``
    describes each check. A finding goes to the logger ``kdoctor.watch``. At the end there is a report. Steps
    are counted from 0, as Keras counts batches, over all epochs.

    ```python
    model.fit(data, callbacks=[kdoctor.Watch()])
    ```

    Args:
        every: compare the replicas after this many steps. By default, 100 or more, so that it takes at most 0.2 %
            of the time.
        on_finding: a function that gets each ``WatchFinding``. It may be called from another thread.
        on_error: ``"stop"`` saves a checkpoint and stops the training after a failure of severity error.
        checkpoint: the file of that checkpoint, ``.keras`` or ``.h5``. Defaults to ``kdoctor-watch.keras``.
        tensorboard: a folder for TensorBoard.
        report: a file for the JSON report.
        history: whether ``kdoctor history`` keeps the report.
        lock: a lock whose digest becomes a tag of the tracked run (MLflow, Weights & Biases).
        stall_s: a step that takes longer, and 20 times as long as usual, is a stall.
        interval_s: seconds between two looks at the machine.
        canary: run fixed programs on the job's devices at this interval (``"10min"``, or seconds), between two steps,
            and compare them bit by bit. By default, there is none.
        saves: the folder where the job saves. If the canary finds a difference, it names the newest file there from
            before its last clean round.
        limits: parameters of checks by id, such as ``{"watch.step-time": {"factor": 1.2}}``.
        model: the model of a custom loop. Keras passes its own.
        strategy: the strategy of a custom loop. Defaults to the current one.
    """

    async_safe = True
    """Keras may call ``on_train_batch_end`` in another thread, while the next step runs."""
    _supports_tf_logs = True
    """tf_keras need not wait for each step's values."""
    _chief_worker_only = False

    def __init__(  # noqa: PLR0913 - settings
        self,
        *,
        every: int | None = None,
        on_finding: Callable[[WatchFinding], object] | None = None,
        on_error: Literal["report", "stop"] = "report",
        checkpoint: str | Path | None = None,
        tensorboard: str | Path | None = None,
        report: str | Path | None = None,
        history: bool = True,
        lock: str | Path | None = None,
        stall_s: float = 120.0,
        interval_s: float = 5.0,
        canary: str | float | None = None,
        saves: str | Path | None = None,
        limits: Mapping[str, Mapping[str, Any]] | None = None,
        model: Any = None,
        strategy: Any = None,
    ) -> None:
        self._settings = Settings(
            every=every,
            on_finding=on_finding,
            on_error=on_error,
            checkpoint=checkpoint,
            tensorboard=tensorboard,
            report=report,
            history=history,
            lock=lock,
            stall_s=stall_s,
            interval_s=interval_s,
            canary=canary,
            saves=saves,
            limits={} if limits is None else limits,
        )
        self.model = model
        self.params: Any = None
        self._strategy = strategy
        self._input = Input()
        self._session: Session | None = None
        self._recorder: Recorder | None = None
        """That of the session."""
        self._stops = on_error == "stop"
        self._step = -1
        """The newest step of a custom loop that has ended, counted from 0."""
        self._epoch_began = 0
        self._stopped = False
        self._in_loop = False
        self.report: Report | None = None
        """The report of the last training, once it has ended."""

    def __str__(self) -> str:
        return render(self.report, "terminal").rstrip("\n") if self.report else "no training has ended"

    def data(self, batches: Any) -> Any:
        """The same batches, watched: a ``tf.data.Dataset``, or in a custom loop any iterable of batches.

        A dataset gets a counter and a prefetch buffer at its end, to see whether a batch is waiting for the training.

        Raises:
            TypeError: these are not batches, or are a ``PyDataset``, which Keras reads in other threads.
        """
        return self._input.wrap(batches)

    def step(self, logs: Any = None, *, gradients: Iterable[Any] | Mapping[str, Any] | None = None) -> None:
        """A step of a custom loop has ended.

        Args:
            logs: its loss, or a dictionary of values.
            gradients: gradients whose values are read, for example in the same order as the model's variables.

        Raises:
            WatchError: a check failed, and ``on_error`` is ``"stop"``. A checkpoint was saved.
        """
        session = self._session
        if session is None:
            raise RuntimeError("call step() inside `with kdoctor.Watch(model=model) as watch:`")
        named = dict(logs) if isinstance(logs, Mapping) else {} if logs is None else {"loss": logs}
        self._step += 1
        session.take(self._step, named, self._named(gradients))
        if not session.recorder.goes_on(self._step + 1):
            self._begin(self._step + 1)
        if self._stopped:
            raise WatchError("kdoctor.Watch stopped the training (see the log and the report)")

    def _named(self, gradients: Iterable[Any] | Mapping[str, Any] | None) -> dict[str, Any]:
        if gradients is None:
            return {}
        if isinstance(gradients, Mapping):
            return dict(gradients)
        names = [str(getattr(one, "path", "") or one.name) for one in self.model.trainable_variables]
        listed = list(gradients)
        names = names if len(names) == len(listed) else [f"gradient {place}" for place in range(len(listed))]
        return {name: gradient for name, gradient in zip(names, listed, strict=True) if gradient is not None}

    def __enter__(self) -> Self:
        self._in_loop = self.model is not None
        if self._in_loop:
            self._start()
            self._begin(0)
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        if self._session is not None and self._in_loop:
            self._session.recorder.cancel()
        self.close(interrupted=kind is not None and kind is not WatchError)

    def _start(self) -> None:
        self.close(interrupted=True)
        self._step, self._epoch_began, self._stopped = -1, 0, False
        self._session = Session(self._settings, self.model, self._input, self._strategy or _strategy(self.model))
        self._recorder = self._session.recorder
        atexit.register(self.close, interrupted=True)

    def _begin(self, step: int) -> None:
        session = self._session
        if session is None:
            return
        session.begin(step)
        if session.failed and self._stops and not self._stopped:
            self._stop(step - 1 if self._in_loop else step)  # fit runs a step that has begun

    def _stop(self, last: int) -> None:
        """Save a checkpoint and stop after a step."""
        self._stopped = True
        try:
            saved = save(self.model, Path(self._settings.checkpoint or CHECKPOINT))
            LOGGER.error("the training stops after step %d; checkpoint of this state: %s", last, saved)
        except Exception as error:  # noqa: BLE001 - a folder that cannot be written, for example
            LOGGER.error("the training stops after step %d; no checkpoint: %s", last, brief(error))
        with contextlib.suppress(AttributeError):
            self.model.stop_training = True

    def close(self, *, interrupted: bool = False) -> None:
        """End the watching and write the report. Keras calls it at the end of ``fit``."""
        session, self._session, self._recorder = self._session, None, None
        if session is not None:
            atexit.unregister(self.close)
            self.report = session.close(interrupted=interrupted)

    # The hooks of a Keras callback. This class is not derived from one, because it serves Keras and tf_keras.

    def set_params(self, params: Any) -> None:
        """Keras passes the parameters of ``fit``."""
        self.params = params

    def set_model(self, model: Any) -> None:
        """Keras passes its model."""
        self.model = model

    def on_train_begin(self, logs: Any = None) -> None:  # noqa: ARG002 - as Keras calls it
        """``fit`` begins."""
        self._start()

    def on_train_end(self, logs: Any = None) -> None:  # noqa: ARG002
        """``fit`` ends."""
        self.close()

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """An epoch begins."""
        if self._session is not None:
            self._epoch_began = self._session.recorder.newest_reported + 1

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:  # noqa: ARG002
        """An epoch ends."""
        if self._session is not None:
            self._session.pause()

    # What follows runs in each step, with cold caches: each call and each object that it touches counts.

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:  # noqa: ARG002
        """A step begins. This is the thread that trains."""
        recorder = self._recorder
        if recorder is not None and not recorder.goes_on(self._epoch_began + batch):
            self._begin(self._epoch_began + int(batch))

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        """A step has ended."""
        recorder = self._recorder
        if recorder is not None:
            recorder.report(self._epoch_began + batch, logs)
            if self._stops and self._session is not None:
                self._session.read()

    def on_test_begin(self, logs: Any = None) -> None:  # noqa: ARG002
        """Validation begins."""
        if self._session is not None:
            self._session.pause()

    def _ignore(self, *arguments: Any, **named: Any) -> None:
        """A hook that is not needed."""

    on_batch_begin = on_batch_end = on_test_end = on_test_batch_begin = on_test_batch_end = _ignore
    on_predict_begin = on_predict_end = on_predict_batch_begin = on_predict_batch_end = _ignore

    def _implements_train_batch_hooks(self) -> bool:
        return True

    def _implements_test_batch_hooks(self) -> bool:
        return False

    def _implements_predict_batch_hooks(self) -> bool:
        return False


def _strategy(model: Any) -> Any:
    """The strategy of a model, if it uses TensorFlow."""
    strategy = getattr(model, "distribute_strategy", None)
    if strategy is None and "tensorflow" in sys.modules:
        strategy = sys.modules["tensorflow"].distribute.get_strategy()
    return strategy


def save(model: Any, path: Path) -> Path:
    """Save the model, or its weights if it cannot be saved whole. A file that is there is replaced at the end only.

    Returns:
        The file that was written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        return _written(model.save, path)
    except Exception as error:  # noqa: BLE001 - classes of the user's without get_config, for example
        weights = path.with_name(f"{path.name.partition('.')[0]}.weights.h5")
        saved = _written(model.save_weights, weights)
        LOGGER.warning("only the weights of the model were saved: %s", brief(error))
        return saved


def _written(write: Any, path: Path) -> Path:
    partial = path.with_name(f"partial-{path.name}")
    try:
        write(str(partial))
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    return path
