"""What own callbacks read of the numbers of an epoch."""

from __future__ import annotations

from typing import Any

from kdoctor_job.target.callbacks import numbers_read


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
