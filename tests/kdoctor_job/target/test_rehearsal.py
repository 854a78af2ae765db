"""Callbacks of Keras, whose hooks are called for two epochs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kdoctor_job.target.rehearsal import why_ended

pytestmark = [pytest.mark.tensorflow, pytest.mark.filterwarnings("ignore:__array__:DeprecationWarning")]


@pytest.fixture(scope="module")
def model() -> Any:
    import keras

    def dice(targets: Any, outputs: Any) -> Any:
        return keras.ops.mean(targets * outputs)

    ones = np.ones((8, 2))
    made = keras.Sequential([keras.Input((2,)), keras.layers.Dense(2)])
    made.compile("sgd", "mse", metrics=[dice, "accuracy"])
    made.fit(ones, ones, verbose=0)
    return made


def test_callbacks_that_raise_after_the_first_epoch_are_named(
    model: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import keras

    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/kept.csv").write_text("kept")
    made = keras.callbacks

    class Own(made.CSVLogger):  # type: ignore[misc,name-defined] # no types
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            raise AssertionError(epoch)

    well = [
        made.EarlyStopping(restore_best_weights=True), made.EarlyStopping("val_accuracy"), made.CSVLogger("new.csv"),
        made.EarlyStopping("dice", mode="max"), made.CSVLogger("logs/kept.csv"), made.BackupAndRestore("backup"),
        made.ModelCheckpoint("missing/{epoch}-{val_loss:.2f}.keras", save_best_only=True), made.ReduceLROnPlateau(),
        made.LearningRateScheduler(lambda epoch, rate: rate / 2), made.TerminateOnNaN(), Own("no/log.csv"),
    ]  # fmt: skip
    badly = {
        "val_dice": made.EarlyStopping("val_dice"),
        "val_acc": made.ReduceLROnPlateau("val_acc"),
        "missing/log.csv": made.CSVLogger("missing/log.csv"),
        "val_auc": made.ModelCheckpoint("{epoch}-{val_auc:.2f}.keras"),
        "float": made.LearningRateScheduler(lambda epoch: 1),
        "use_ema": made.SwapEMAWeights(swap_on_epoch=True),
    }
    numbers = ["loss", "dice", "accuracy", "val_loss", "val_dice", "val_accuracy"]
    assert [why_ended(one, model, numbers, own=True) for one in well] == [None] * len(well)
    for part, one in badly.items():
        assert part in str(why_ended(one, model, numbers, own=True))
    assert why_ended(badly["float"], model, numbers, own=False) is None  # it calls the job's function
    assert [str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")] == ["logs", "logs/kept.csv"]
    assert (tmp_path / "logs/kept.csv").read_text() == "kept"
    assert badly["val_dice"].monitor_op is None


def test_callback_with_files_on_another_machine_is_not_called(model: Any) -> None:
    import keras

    remote = keras.callbacks.CSVLogger("gs://bucket/log.csv")
    assert why_ended(remote, model, ["loss"], own=True) is None
