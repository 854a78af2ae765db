"""Names of TensorFlow and Keras that newer releases no longer have: ``removed.yaml``, and their mechanical fixes."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import yaml

from kdoctor_lint.edits import REMOVE, Cast, Change, Ending, Keywords, Method, Name, OfRemoved


class Removed(NamedTuple):
    """Something that was removed."""

    name: str
    """The canonical name, a method (``Model.fit_generator``) or an argument (``Model.fit(workers=)``)."""
    package: str
    """``tensorflow`` or ``keras``."""
    since: tuple[int, int]
    """The first release of the package without it."""
    instead: str
    """What to use, as code."""
    source: str
    edit: OfRemoved | None = None
    """How to fix it, if that is mechanical."""
    safe: bool = True
    """Whether the fixed code certainly does the same."""


_LOADING = {"workers": REMOVE, "use_multiprocessing": REMOVE, "max_queue_size": REMOVE}
_GENERATOR = {"generator": Change("x"), **_LOADING}
_FIT = (
    "steps_per_epoch", "epochs", "verbose", "callbacks", "validation_data", "validation_steps", "validation_freq",
    "class_weight", "max_queue_size", "workers", "use_multiprocessing", "shuffle", "initial_epoch",
)  # fmt: skip
"""The positional arguments of ``fit_generator`` after the generator, in Keras 2.2.5 and newer."""
_EVALUATE = ("steps", "callbacks", "max_queue_size", "workers", "use_multiprocessing", "verbose")

_EDITS: Mapping[str, OfRemoved] = {
    "tensorflow.to_float": Cast("float32"),
    "tensorflow.to_double": Cast("float64"),
    "tensorflow.to_int32": Cast("int32"),
    "tensorflow.to_int64": Cast("int64"),
    "Strategy.experimental_run_v2": Method("run"),
    "Model.predict_proba": Method("predict"),
    "Optimizer(lr=)": Keywords({"lr": Change("learning_rate")}),
    "Optimizer.lr": Name(("lr",), ("learning_rate",)),
    "Metric.reset_states": Method("reset_state"),
    "Model.compile(experimental_run_tf_function=)": Keywords({"experimental_run_tf_function": REMOVE}),
    "Model.compile(experimental_steps_per_execution=)": Keywords(
        {"experimental_steps_per_execution": Change("steps_per_execution")}
    ),
    "ModelCheckpoint(period=)": Keywords({"period": Change("save_freq", '"epoch"', only="1")}),
    "TensorBoard(batch_size=)": Keywords({"batch_size": REMOVE}),
    "TensorBoard(write_grads=)": Keywords({"write_grads": Change("", only="False")}),
    "Model.fit_generator": Method("fit", _FIT, _GENERATOR),
    "Model.evaluate_generator": Method("evaluate", _EVALUATE, _GENERATOR),
    "Model.predict_generator": Method("predict", _EVALUATE, _GENERATOR),
    **{f"Model.{name}({key}=)": Keywords(_LOADING) for name in ("fit", "evaluate", "predict") for key in _LOADING},
    "Optimizer(decay=)": Keywords({"decay": REMOVE}),
    "ModelCheckpoint without .weights.h5": Ending("filepath", ".weights.h5", (".h5", ".hdf5")),
    "ModelCheckpoint without .keras": Ending("filepath", ".keras", (".hdf5",)),
    "Model.save without .keras": Ending("filepath", ".keras"),
    "Model.save_weights without .weights.h5": Ending("filepath", ".weights.h5", (".h5", ".hdf5")),
}


def _entries() -> Iterator[Removed]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for group in yaml.load(Path(__file__).with_name("removed.yaml").read_bytes(), loader):  # noqa: S506 - a safe loader
        major, minor = map(int, group["since"].split("."))
        what = group["package"], (major, minor)
        safe = group.get("safe", True)
        for name, instead in group.get("names", {}).items():
            yield Removed(name, *what, instead, group["source"], _EDITS.get(name), safe)
        for name, now in group.get("moved", {}).items():
            yield Removed(name, *what, now.replace("tensorflow.", "tf.", 1), group["source"], _renamed(name, now), safe)


def _renamed(name: str, now: str) -> Name:
    old, new = name.split("."), now.split(".")
    shared = next(number for number in range(len(old) + 1) if old[: number + 1] != new[: number + 1])
    return Name(tuple(old[shared:]), tuple(new[shared:]))


REMOVED: Mapping[str, Removed] = {entry.name: entry for entry in _entries()}
"""Every entry by its name."""


def removed_in(name: str) -> Removed | None:
    """The entry of a full name or of a module that it is in."""
    while name:
        if name in REMOVED:
            return REMOVED[name]
        name = name.rpartition(".")[0]
    return None
