from collections.abc import Iterator
from typing import Any

import pytest

import kdoctor
from kdoctor_watch.recorder import Recorder
from kdoctor_watch.variables import note_gradients, read_pending

np = pytest.importorskip("numpy")


def test_batches_can_be_read_in_each_epoch() -> None:
    batches = kdoctor.Watch().data([1, 2, 3])
    assert [list(batches) for _ in range(2)] == [[1, 2, 3]] * 2
    assert len(batches) == 3


def test_generator_stays_a_generator() -> None:
    def generate() -> Iterator[int]:
        yield from (1, 2)

    batches = kdoctor.Watch().data(generate())
    assert next(batches) == 1
    assert list(batches) == [2]


class PyDataset:
    __module__ = "keras.src.trainers.data_adapters.py_dataset_adapter"


class Images(PyDataset):
    def __getitem__(self, index: int) -> Any:
        return index

    def __iter__(self) -> Iterator[int]:
        return iter((1, 2))


@pytest.mark.parametrize("data", [np.ones((8, 3)), Images(), 3, None], ids=lambda one: type(one).__name__)
def test_what_is_not_batches_is_refused(data: Any) -> None:
    with pytest.raises(TypeError, match=r"^data: expected "):
        kdoctor.Watch().data(data)


def test_numbers_of_no_framework_are_read() -> None:
    recorder = Recorder(120.0)
    recorder.report(0, {"loss": np.float32(1.0), "name": np.array("text")})
    recorder.report(1, {"loss": np.float32("inf")})
    recorder.read_reports()
    read_pending(recorder)
    note_gradients(recorder, 1, {"kernel": np.array([1.0, np.nan]), "bias": np.ones(2)})
    assert {(kind, name): bad.step for (kind, name), bad in recorder.bad.items()} == {
        ("log", "loss"): 1,
        ("gradient", "kernel"): 1,
    }
    assert recorder.steps_read == 2


def test_step_whose_values_cannot_be_read_does_not_count() -> None:
    recorder = Recorder(120.0)
    recorder.report(0, {"loss": object()})
    recorder.read_reports()
    read_pending(recorder)
    assert (recorder.steps_read, recorder.bad) == (0, {})


def test_gradients_that_cannot_be_read_are_a_note(caplog: pytest.LogCaptureFixture) -> None:
    class Model:
        variables = non_trainable_variables = ()

    with kdoctor.Watch(model=Model(), history=False) as watch:
        for _ in range(3):
            watch.step(1.0, gradients={"kernel": object()})
    notes = [record for record in caplog.records if "gradients" in record.getMessage()]
    assert len(notes) == 1
