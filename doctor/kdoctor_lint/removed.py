"""Names of TensorFlow and Keras that newer releases no longer have: ``removed.yaml``, and their mechanical fixes."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import yaml

from kdoctor_lint.edits import REMOVE, Called, Edit, Name


class Removed(NamedTuple):
    """Something that was removed."""

    name: str  # The canonical name, a method (``Model.fit_generator``) or an argument (``Model.fit(workers=)``)
    package: str  # ``tensorflow`` or ``keras``
    since: tuple[int, int]  # The first release of the package without it
    instead: str  # What to use, as code
    source: str
    edit: Edit | None = None  # How to fix it, if that is mechanical
    safe: bool = True  # Whether the fixed code certainly does the same


_METHODS = ("fit", "evaluate", "predict")
_LOADING = dict.fromkeys(("workers", "use_multiprocessing", "max_queue_size"), REMOVE)
_EDITS: Mapping[str, Edit] = {
    "Strategy.experimental_run_v2": Called("run"),
    "Model.predict_proba": Called("predict"),
    "Metric.reset_states": Called("reset_state"),
    "Optimizer.lr": Name(("lr",), ("learning_rate",)),
    "Optimizer(lr=)": Called(keywords={"lr": "learning_rate"}),
    "Optimizer(decay=)": Called(keywords={"decay": REMOVE}),
    "TensorBoard(batch_size=)": Called(keywords={"batch_size": REMOVE}),
    "Model.compile(experimental_run_tf_function=)": Called(keywords={"experimental_run_tf_function": REMOVE}),
    "Model.compile(experimental_steps_per_execution=)": Called(
        keywords={"experimental_steps_per_execution": "steps_per_execution"}
    ),
    **{f"Model.{name}_generator": Called(name, {"generator": "x", **_LOADING}) for name in _METHODS},
    **{f"Model.{name}({key}=)": Called(keywords=_LOADING) for name in _METHODS for key in _LOADING},
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


REMOVED: Mapping[str, Removed] = {entry.name: entry for entry in _entries()}  # Every entry by its name


def removed_in(name: str) -> Removed | None:
    """The entry of a full name or of a module that it is in."""
    while name:
        if name in REMOVED:
            return REMOVED[name]
        name = name.rpartition(".")[0]
    return None
