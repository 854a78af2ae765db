"""What a script saves after its ``fit``, which does not return in an examination."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from helpers.cases import cases
from kdoctor_job.target.saves import first_save, numbers_of_history, save_after_loop

pytestmark = pytest.mark.tensorflow

FIT = "model.fit(data)\n"


@cases(
    (FIT + "model.save('model')", 2),
    (FIT + "model.save(f'{folder}/best')", 2),
    (FIT + "print(1)\nwith lock:\n    model.save_weights(os.path.join(folder, 'best.h5'))", 4),
    (FIT + "for name in names:\n    saved = model.save(folder / name / 'all')", 3),
    (FIT + "model.save(args.output)", 2),
    (FIT + "model.save('model', save_format='tf')", 2),
    ("def main():\n    model.fit(data)\n    self.model.save(path)\nmain()", 3),
    ("if cond:\n    model.fit(data)\n    model.save('model')\n", 3),
    ("try:\n    model.fit(data)\nfinally:\n    model.save('model')\n", None),
    (FIT + "model.save('model.keras')\nmodel.save('old.h5')\nmodel.save_weights('a.weights.h5')", None),
    (FIT + "if cond:\n    model.save('model')\ntry:\n    model.save('model')\nexcept ValueError:\n    pass", None),
    ("def later():\n    model.save('model')\n" + FIT, None),
    ("model.save('model')\n" + FIT, None),
    (FIT + "other.save('model')\nmodel.save(unknown)\nmodel.save(name(), overwrite=yes)\nmodel.save()", None),
    (FIT + "model.save('model', save_format=kind)\nmodel.save(f'{a}{b}')", None),
    (FIT + "model.save('mod", None),
)
def test_call_that_will_raise_after_the_training_is_named(source: str, line: int | None) -> None:
    import keras

    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    values: dict[str, Any] = {
        "model": model, "self": SimpleNamespace(model=model), "path": Path("run/model"), "folder": Path("run"),
        "other": keras.Sequential(), "args": SimpleNamespace(output="out"), "a": "b", "b": "c",
    }  # fmt: skip
    fit = next(number for number, text in enumerate(source.splitlines(), 1) if "fit(" in text)
    found = first_save(model, source, fit, values)
    assert (found[1] if found and found[0] else None) == line
    assert "kdoctor-job" not in str(found)


def test_class_with_its_own_way_to_save_decides() -> None:
    import keras

    class Saves(keras.Sequential):  # type: ignore[misc] # no types
        def save(self, path: str) -> None:
            """Anything."""

    model = Saves([keras.Input((2,))])
    assert first_save(model, f"{FIT}model.save('model')", 1, {"model": model}) is None


def test_layer_without_its_arguments_is_named() -> None:
    import keras

    class Scaled(keras.layers.Layer):  # type: ignore[misc] # no types
        def __init__(self, by: Any) -> None:
            super().__init__()
            self.by = by

    model = keras.Sequential([keras.Input((2,)), Scaled(object())])
    source = f"{FIT}model.save('model.h5')\nmodel.save('model.keras')"
    found = first_save(model, source, 1, {"model": model})
    assert found is not None
    assert found[1] == 3


def test_numbers_of_the_history_are_those_of_this_fit() -> None:
    source = """
first = model.fit(data)
print(first.history["old"])
if longer:
    second = model.fit(data,
        epochs=2)
    plot(second.history["acc"], second.history["val_loss"])
    print(first.history["loss"], second.other["lr"], second.history[name])
    if plots:
        second.history["rare"]
plot(second.history["loss"])
"""
    assert numbers_of_history(source, 6) == ["acc", "loss", "val_loss"]
    assert numbers_of_history(source, 9) == numbers_of_history("model.fit(", 1) == []


@cases(("model.save('model')", True), ("model.save('model.h5')", False), ("data.save('model')", None))
def test_save_after_a_loop_is_of_any_model(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, saves: str, *, raises: bool | None
) -> None:
    import keras

    script = tmp_path / "train.py"
    script.write_text(f"for step in range(1):\n    found = train()\n{saves}\n")
    monkeypatch.setattr(sys.modules["__main__"], "__file__", str(script), raising=False)
    found = []

    def train() -> None:
        found.append(save_after_loop())
        raise InterruptedError

    values = {"model": keras.Sequential([keras.Input((2,))]), "data": Path(), "train": train}
    with pytest.raises(InterruptedError):
        exec(compile(script.read_text(), str(script), "exec"), values)  # noqa: S102 - the test's script
    save = found[0]
    assert (save and (save["place"], bool(save["error"]))) == (None if raises is None else ("train.py:3", raises))
