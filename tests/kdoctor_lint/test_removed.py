"""The table of removed names, compared with the installed TensorFlow and Keras."""

import json
import sys

import pytest

from helpers.command import captured
from kdoctor_lint.removed import REMOVED, removed_in

PROGRAM = """
import importlib, json, sys
def found(name):
    module, *rest = name.split(".")
    value = importlib.import_module(module)
    for number, part in enumerate(rest):
        try:
            value = getattr(value, part)
        except AttributeError:
            try:
                value = importlib.import_module(".".join([module, *rest[: number + 1]]))
            except ImportError:
                return False
    return True
print(json.dumps([name for name in json.load(sys.stdin) if found(name)]))
"""
OWNERS = {
    "Strategy": "tensorflow.distribute.Strategy", "Model": "keras.Model", "Optimizer": "keras.optimizers.Optimizer",
    "Metric": "keras.metrics.Metric", "DistributeOptions": "tensorflow.data.experimental.DistributeOptions",
}  # fmt: skip
"""The classes of the methods that the table names."""
RAISES = "keras.optimizers.legacy"
"""It exists, but its optimizers raise ImportError."""
GRAPHS = "tensorflow.compat.v1."
"""It exists, but Keras 3 cannot do what its functions are for."""


def test_modules_cover_their_names() -> None:
    found = removed_in("tensorflow.contrib.distribute.MirroredStrategy")
    assert found is not None
    assert found.name == "tensorflow.contrib"
    assert removed_in("tensorflow.distribute.MirroredStrategy") is None


def test_entries_name_release_and_source() -> None:
    for removed in REMOVED.values():
        assert removed.package in {"tensorflow", "keras"}
        assert removed.source.startswith("https://")
        assert removed.instead
        assert removed.since >= (2, 0)


@pytest.mark.tensorflow
def test_names_are_missing_from_installed_release() -> None:
    kept = (RAISES, GRAPHS)
    names = [name for name in REMOVED if name.startswith(("tensorflow.", "keras.")) and not name.startswith(kept)]
    names += [f"tensorflow.{name}" for name in names if name.startswith("keras.")]
    parts = [name.split(".") for name in REMOVED if name.replace(".", "").isidentifier()]
    names += [".".join([OWNERS[owner], *rest]) for owner, *rest in parts if owner in OWNERS]
    done = captured([sys.executable, "-c", PROGRAM], input=json.dumps(names), check=True, timeout=240)
    assert json.loads(done.stdout.splitlines()[-1]) == []
