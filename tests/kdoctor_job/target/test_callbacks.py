"""What own callbacks read of the numbers of an epoch."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kdoctor_job.target.callbacks import numbers_read, other_place, unwritable, why_it_raises


class Base:
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        str(logs)


class Reads(Base):
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        super().on_epoch_end(epoch, logs)
        logs = logs or {}
        best = max(logs["val_accuracy"], logs.get("top"))
        self.text = f"{logs['loss']:.2f} {best}", *(logs or {}).items()


class Asks(Base):
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        if "val_loss" in logs:
            str(logs["val_loss"] + logs[self])


class Adds(Base):
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        logs["rate"] = 0.1


class Passes(Base):
    def on_epoch_end(self, epoch: int, numbers: Any = None) -> None:
        self.added(numbers["loss"], numbers)

    def added(self, *_: Any) -> None:
        """It could add numbers."""


class Other:
    def on_batch_end(self, batch: int, logs: Any = None) -> None:
        del logs["loss"]


def test_numbers_are_those_that_the_code_cannot_do_without() -> None:
    assert numbers_read(Base()) == numbers_read(Other()) == numbers_read(Asks()) == set()
    assert numbers_read(Reads()) == {"val_accuracy", "loss"}
    assert numbers_read(Adds()) is numbers_read(Passes()) is None
    Base.on_epoch_end = str  # type: ignore[assignment,method-assign]
    assert numbers_read(Base()) is None


@pytest.mark.parametrize(
    ("attributes", "found"),
    [
        ({"filepath": "FOLDER/{epoch}.keras", "monitor": "val_loss", "save_freq": "epoch", "options": None}, None),
        ({"_backup_dir": Path("FOLDER"), "file_flags": ""}, None),
        ({"filename": "log.csv"}, "SimpleNamespace.filename is 'log.csv'"),
        ({"filepath": "FOLDER/../run7/{epoch}.keras"}, "SimpleNamespace.filepath is 'FOLDER/../run7/{epoch}.keras'"),
        ({"profile_batch": "10,20", "log_dir": Path("/data/logs")}, "SimpleNamespace.log_dir is '/data/logs'"),
        ({"save_folder": "FOLDER2"}, "SimpleNamespace.save_folder is 'FOLDER2'"),
    ],
)
def test_paths_outside_the_folder_are_found(attributes: dict[str, Any], found: str | None, tmp_path: Path) -> None:
    placed = {
        name: type(value)(str(value).replace("FOLDER", str(tmp_path / "job"))) if value else value
        for name, value in attributes.items()
    }
    wanted = found and found.replace("FOLDER", str(tmp_path / "job"))
    assert other_place([SimpleNamespace(), SimpleNamespace(**placed)], tmp_path / "job") == wanted


def saving(kind: str, **places: Any) -> Any:
    """A callback of a class that derives from one of Keras."""
    made = type("Own", (type(kind, (), {}),), {})()
    vars(made).update(places)
    return made


def test_folder_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    logs = tmp_path / "logs"
    logs.mkdir()
    saves = [
        saving("ModelCheckpoint", filepath="new/{epoch:02d}/best.keras"), saving("TensorBoard", log_dir=logs),
        saving("CSVLogger", filename="log.csv"), saving("BackupAndRestore", _backup_dir=f"{tmp_path}/backup"),
    ]  # fmt: skip
    assert [unwritable(one) for one in saves] == [None] * 4
    refused = {str(tmp_path), str(logs)}
    monkeypatch.setattr(os, "access", lambda folder, _: str(folder) not in refused)
    assert [unwritable(one) for one in saves] == [str(tmp_path), str(logs), str(tmp_path), str(tmp_path)]
    others = [saving("Reader", filename="log.csv"), saving("ModelCheckpoint", filepath="gs://bucket/best.keras")]
    assert [unwritable(one) for one in others] == [None] * 2


def test_rate_is_set_by_a_callback_or_by_a_schedule() -> None:
    setting = saving("ReduceLROnPlateau")
    found = why_it_raises(setting, None, "CosineDecay")
    assert found is not None
    assert found[0] == "Own sets the learning rate, which CosineDecay decides: it raises"
    assert why_it_raises(setting, None, None) is why_it_raises(Base(), None, "CosineDecay") is None
