"""Where findings go while a training runs: the log, TensorBoard, the user's function, and trackers of experiments."""

import logging
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from kdoctor.model import Finding, Severity
from kdoctor.records import record

LOGGER = logging.getLogger("kdoctor.watch")
_MOST_WARNINGS = 20
_LEVELS = {Severity.ERROR: logging.ERROR, Severity.WARNING: logging.WARNING, Severity.INFO: logging.INFO}


@record
class WatchFinding:
    """A problem of a training that runs."""

    check: str
    """Id of the check."""
    severity: Severity
    finding: Finding
    step: int
    """The step at which it was found, counted from 0 over the whole run."""

    def __str__(self) -> str:
        found = self.finding
        return f"{self.check}: {found.subject}: {found.observed} (expected: {found.expected}). {found.remedy.summary}"


class Publisher:
    """Hands each finding on, once. An error of a receiver is logged and does not end the training."""

    def __init__(self, on_finding: Callable[[WatchFinding], object] | None, tensorboard: str | Path | None) -> None:
        self._on_finding = on_finding
        self._folder = None if tensorboard is None else str(tensorboard)
        self._summaries: Any = None
        self._said: set[str] = set()

    def publish(self, found: WatchFinding) -> None:
        """A new finding."""
        LOGGER.log(_LEVELS[found.severity], "%s", found)
        self._guarded("TensorBoard", lambda: self._board(lambda board: board.text(found.check, str(found), found.step)))
        if self._on_finding is not None:
            self._guarded("on_finding", lambda: self._on_finding and self._on_finding(found))

    def numbers(self, values: Mapping[str, float | None], step: int) -> None:
        """Values over time, for TensorBoard."""

        def write(board: Any) -> None:
            for name, value in values.items():
                if value is not None:
                    board.scalar(f"kdoctor/{name}", value, step)

        self._guarded("TensorBoard", lambda: self._board(write))

    def close(self) -> None:
        """Write what is left."""
        if self._summaries is not None:
            self._guarded("TensorBoard", self._summaries.close)
        self._summaries = None

    def _board(self, write: Callable[[Any], object]) -> None:
        if self._folder is None:
            return
        if "tensorflow" not in sys.modules:
            raise RuntimeError("the job has not imported TensorFlow, which writes its files")
        if self._summaries is None:
            from kdoctor_watch.target.tensorflow_state import Summaries

            self._summaries = Summaries(self._folder)
        write(self._summaries)

    def _guarded(self, name: str, action: Callable[[], object]) -> None:
        try:
            action()
        except Exception as error:  # noqa: BLE001 - a receiver may raise anything
            self.warn(f"{name} failed: {brief(error)}")

    def warn(self, message: str) -> None:
        """Log a message once."""
        if message not in self._said and len(self._said) < _MOST_WARNINGS:
            self._said.add(message)
            LOGGER.warning("%s", message)


def tag_run(values: Mapping[str, str]) -> None:
    """Add tags to the run that MLflow or Weights & Biases tracks, if the job has imported them and one is active."""
    mlflow, wandb = sys.modules.get("mlflow"), sys.modules.get("wandb")
    try:
        if mlflow is not None and mlflow.active_run() is not None:
            mlflow.set_tags(dict(values))
        if wandb is not None and getattr(wandb, "run", None) is not None:
            wandb.run.config.update(dict(values), allow_val_change=True)
            verdict = values.get("kdoctor.verdict")
            if verdict:
                others = [tag for tag in wandb.run.tags or () if not tag.startswith("kdoctor:")]
                wandb.run.tags = (*others, f"kdoctor:{verdict}")
    except Exception as error:  # noqa: BLE001 - a tracker may be offline
        LOGGER.warning("the run could not be tagged: %s", brief(error))


def brief(error: Exception) -> str:
    """An error in one line."""
    return f"{type(error).__name__}: {str(error).strip().partition(chr(10))[0]}"
