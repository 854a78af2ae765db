"""What a script saves after its ``fit``, which does not return in an examination."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from helpers.cases import cases
from kdoctor_job.target.saves import why_unsaved

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
    found = why_unsaved(model, source, fit, values)
    assert (found[1] if found and found[0] else None) == line


def test_class_with_its_own_way_to_save_decides() -> None:
    import keras

    class Saves(keras.Sequential):  # type: ignore[misc] # no types
        def save(self, path: str) -> None:
            """Anything."""

    model = Saves([keras.Input((2,))])
    assert why_unsaved(model, f"{FIT}model.save('model')", 1, {"model": model}) is None


def test_layer_without_its_arguments_is_named() -> None:
    import keras

    class Scaled(keras.layers.Layer):  # type: ignore[misc] # no types
        def __init__(self, by: Any) -> None:
            super().__init__()
            self.by = by

    model = keras.Sequential([keras.Input((2,)), Scaled(object())])
    source = f"{FIT}model.save('model.h5')\nmodel.save('model.keras')"
    found = why_unsaved(model, source, 1, {"model": model})
    assert found is not None
    assert found[1] == 3
