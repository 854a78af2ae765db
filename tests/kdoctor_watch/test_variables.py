import os
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import kdoctor
from kdoctor_watch import variables
from kdoctor_watch.canary import Canary
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


def test_difference_is_dated_from_when_all_were_equal(monkeypatch: pytest.MonkeyPatch) -> None:
    differences = iter([[], [(0, 1, 0)], [(0, 1, 0), (1, 1, 0)]])
    seen = SimpleNamespace(names=["a", "b"], mirrored=[True] * 2, replicas=2)
    state = SimpleNamespace(**vars(seen), look=lambda: seen, describe=lambda *_: {"device": "GPU:1"})
    monkeypatch.setattr(variables, "_state_of", lambda _: state)
    monkeypatch.setattr("kdoctor_watch.target.state.not_finite", lambda _: [])
    monkeypatch.setattr("kdoctor_watch.target.state.different", lambda _: next(differences))
    watched = variables.Variables(object(), Recorder(120.0), None)
    for step in (10, 20, 30):
        watched.look(step)
    found = watched.facts().differences
    assert [(one.variable, one.step, one.equal_at) for one in found] == [("a", 20, 10), ("b", 30, 10)]


def test_save_to_go_on_from_is_the_newest_before_the_last_clean_round(tmp_path: Path) -> None:
    wrong: list[dict[str, Any]] = []
    found: Any = SimpleNamespace(differences=[], rounds=2, programs=())
    found.again = lambda **_: found.differences.extend(wrong)
    canary = Canary(0.0, ("GPU:0",), is_jax=False, saves=tmp_path)
    canary._comparison = found
    for age in (60, 30, -60):
        (tmp_path / f"{age}.keras").touch()
        os.utime(tmp_path / f"{age}.keras", (time.time() - age,) * 2)
    assert not canary.look(7)
    fields = ("device", "other", "elements", "differing", "first", "rounds", "found_in")
    wrong.append({"program": "training", **dict.fromkeys(fields, 1)})
    assert canary.look(8)
    wrong.clear()
    assert not canary.look(9)
    facts = canary.facts()
    assert (facts.kept, facts.clean_step, facts.found_step) == (str(tmp_path / "30.keras"), 7, 8)


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
