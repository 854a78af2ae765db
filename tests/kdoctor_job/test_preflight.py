"""``kdoctor.preflight`` and ``kdoctor.guard`` on common kinds of models."""

import html.parser
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from helpers.command import captured
from helpers.kdoctor_job.job_runs import trials
from helpers.tiers import asked_for, tiered

MODELS = ("dense", "cnn", "transfer", "transformer", "own-step", "several")
FOUND_BY = {
    "model-outside": "job.model-in-scope",
    "compile-outside": "job.optimizer-in-scope",
    "part-outside": "job.variables-mirrored",
    "odd-batch": "job.batch-divides",
    "small-batch": "job.batch-is-global",
    "starved": "job.final-batch",
    "no-prefetch": "job.prefetch",
    "endless": "job.epoch-ends",
    "default-rate": "job.learning-rate",
    "scalar-loss": "job.equals-one-device",
    "ruined-loss": "job.trains",
    "slow-input": "job.input-bound",
    "clipnorm": "job.clipping",
    "several-steps": "job.steps-per-execution",
}
"""The check that finds each pitfall."""

ALSO = {"scalar-loss": {"job.evaluate", "job.metrics"}}
"""Other checks that find a pitfall: the mean of a share of the batch, summed over the replicas, is wrong there, too."""

NORMALISED = ("cnn",)
STARVED = ("cnn", "transfer")
"""Models with convolutions: on CPU devices, fit raises an error if a replica gets no example."""
RANDOM = ("cnn", "transfer", "transformer")
"""Models with layers that draw random numbers; with Keras 3 the same ones on every replica."""
TIMED = {"job.input-bound"}
"""Depends on the speed of this machine: steps take a millisecond."""
UNEVEN = {"several": "job.evaluate"}
"""With several losses, Keras 3 reports in evaluate another loss than one device if the final batch is uneven."""

SPOILING = {"odd-batch", "ruined-loss", "starved"}
"""After these, what is always found of the model is not always measured."""

TRIALS = [
    f"{model}:{pitfall}"
    for model in MODELS
    for pitfall in ("none", *FOUND_BY)
    if (model, pitfall) != ("own-step", "part-outside")
]
QUICK = {"cnn:starved", "dense:model-outside", "dense:scalar-loss"}


@pytest.fixture(scope="module")
def runs(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The trials, in one child process."""
    return trials("matrix", *asked_for(request))


def findings(found: dict[str, Any], pitfall: str) -> set[str]:
    return {check for check in found["findings"] if check not in TIMED or pitfall == "slow-input"}


def expected(model: str, pitfall: str) -> set[str]:
    """The checks that must fail."""
    always = {"job.random-layers"} if model in RANDOM else set()
    always |= {UNEVEN[model]} if model in UNEVEN else set()
    always |= {"job.state"} if model in NORMALISED else set()
    if pitfall == "none" or (pitfall == "starved" and model not in STARVED):
        return always
    return {FOUND_BY[pitfall], *ALSO.get(pitfall, ()), *always}


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", tiered(TRIALS, QUICK))
def test_planted_pitfall_has_no_findings_but_its_own(runs: dict[str, Any], name: str) -> None:
    model, pitfall = name.split(":")
    found, possible = findings(runs[name], pitfall), expected(model, pitfall)
    if pitfall in SPOILING:
        assert found <= possible
        assert pitfall == "starved" or FOUND_BY[pitfall] in found
    else:
        assert found == possible
    assert model != "dense" or runs[name]["unknown"] == {}


@pytest.mark.smoke_full
def test_preflight_changes_no_state() -> None:
    both = trials("untouched")
    assert both["with"].keys() == both["without"].keys()
    assert [name for name in both["with"] if both["with"][name] != both["without"][name]] == []


GOOD = (
    *("tf.data", "function", "PyDataset", "arrays"),
    *("function of a generator", "dataset of a generator", "function of a model", "distributed"),
    "two inputs in a list",
)
BAD = {
    "empty": ("job.data-readable", "empty"),
    "empty arrays": ("job.data-readable", "empty"),
    "unbatched": ("job.data-readable", "batch"),
    "ragged": ("job.data-readable", "InvalidArgumentError: Cannot batch tensors with different shapes"),
    "ragged tensors": ("job.data-readable", "RaggedTensor"),
    "of two lengths": ("job.data-readable", "40, 64"),
    "nothing": ("job.model-and-data", "None"),
    "raises": ("job.model-and-data", "ZeroDivisionError: division by zero ("),
    "wants arguments": ("job.model-and-data", "(path)"),
    "no model": ("job.model-and-data", "str"),
    "function of no model": ("job.model-and-data", "None"),
    "PyDataset without end": ("job.epoch-ends", "steps"),
    "generator of eight batches": ("job.examples", "of the first 128 examples, fit trained"),
    "generator of eight batches of two sizes": ("job.examples", "of the first 96 examples, fit trained"),
    "strings": ("job.trains", "Value for attr 'T' of string"),
    "parts of two sizes": ("job.equals-one-device", "weights differ"),
}
"""Form of the job to the check that fails and a decisive part of its finding."""


QUICK_FORMS = {
    *(BAD.keys() - {"generator of eight batches of two sizes", "PyDataset without end"}),
    *("PyDataset", "generator", "not compiled"),
}


@pytest.fixture(scope="module")
def forms(request: pytest.FixtureRequest) -> dict[str, Any]:
    """One model with kinds of data, in one child process."""
    return trials("forms", *asked_for(request, "form"))


@pytest.mark.tensorflow
@pytest.mark.parametrize("form", tiered([*GOOD, "inside the scope", "no strategy"], QUICK_FORMS))
def test_every_form_of_model_and_data_passes(forms: dict[str, Any], form: str) -> None:
    assert (forms[form]["verdict"], findings(forms[form], "none"), forms[form]["unknown"]) == ("pass", set(), {})


@pytest.mark.tensorflow
@pytest.mark.parametrize("form", tiered(BAD, QUICK_FORMS))
def test_unusable_model_or_data_has_one_finding(forms: dict[str, Any], form: str) -> None:
    check, part = BAD[form]
    assert forms[form]["findings"].keys() - TIMED == {check}
    (observed,) = forms[form]["findings"][check]
    assert part in observed
    assert "\n" not in observed
    assert forms[form]["unknown"].keys() == ({"job.metrics"} if form == "parts of two sizes" else set())


@pytest.mark.tensorflow
@pytest.mark.parametrize("form", ["without call"])
def test_model_without_call_is_examined_as_if_it_had_one(forms: dict[str, Any], form: str) -> None:
    assert forms[form]["findings"].keys() - TIMED == {"job.options", "job.equals-one-device"}
    (observed,) = forms[form]["findings"]["job.options"]
    assert "does not have a `call()`" in observed


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "form", tiered(["generator", "generator in a dataset", "distributed from a function"], QUICK_FORMS)
)
def test_generator_is_not_consumed_and_is_unknown(forms: dict[str, Any], form: str) -> None:
    assert forms["generator left alone"] is True
    assert forms[form]["verdict"] == "unknown"
    assert "job.data-readable" in forms[form]["unknown"]


@pytest.mark.tensorflow
@pytest.mark.parametrize("form", ["not compiled"])
def test_uncompiled_model_is_unknown(forms: dict[str, Any], form: str) -> None:
    assert forms[form]["verdict"] == "unknown"
    assert "compiled" in forms[form]["unknown"]["job.trains"]


@pytest.fixture(scope="module")
def classes(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Models of own classes, in one child process."""
    return trials("classes", *asked_for(request, "kind"))


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "kind", tiered(["early", "strict", "complex", "unregistered", "of no module"], {"strict", "complex"})
)
def test_model_whose_class_says_nothing_of_itself_is_copied(classes: dict[str, Any], kind: str) -> None:
    assert classes[kind]["verdict"] == "pass"
    assert classes[kind]["untouched"]
    assert classes[kind]["unknown"] == {}


@pytest.mark.tensorflow
@pytest.mark.parametrize("kind", ["raising"])
def test_model_whose_call_raises_fails_with_the_users_line(classes: dict[str, Any], kind: str) -> None:
    (observed,) = classes[kind]["findings"]["job.trains"]
    path = Path(__file__).parents[1] / "helpers" / "kdoctor_job" / "job_classes.py"
    lines = path.read_text(encoding="utf-8").splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "np.ones(3)[7]" in text)
    assert observed.startswith("IndexError: ")
    assert f"helpers/kdoctor_job/job_classes.py:{line})" in observed


class Cells(html.parser.HTMLParser):
    """Open tags, and the number of rows inside and outside folded parts."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.shown = self.folded = 0

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.folded += tag == "tr" and "details" in self.open
        self.shown += tag == "tr" and "details" not in self.open
        self.open += [tag] if tag != "br" else []

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.tensorflow
def test_guard_raises_and_result_renders() -> None:
    found = trials("guard")
    assert found["good"] is True
    assert found["notes"] == 0
    assert re.fullmatch(r"kdoctor: READY in .*MirroredStrategy over 2 replicas\n", found["printed"])
    assert "guard(model, data, strategy)" in found["swapped"]
    assert "'epoch'; did you mean 'epochs'?" in found["misspelt"]
    verdict, finding, *rest = found["raised"].splitlines()
    assert verdict.startswith("NOT READY in ")
    assert finding.startswith("- job.model-in-scope: model Sequential: ")
    assert "strategy.scope()" in "\n".join(rest)
    assert "job.model-in-scope" in found["text"]
    cells = Cells()
    cells.feed(found["html"])
    assert cells.open == []
    assert (cells.shown, cells.folded) == (1, 37)


def test_import_kdoctor_is_light() -> None:
    program = "import sys; before = set(sys.modules); import kdoctor; print(*sorted(set(sys.modules) - before))"
    done = captured([sys.executable, "-c", program], check=True)
    loaded = done.stdout.split()
    assert [name for name in loaded if name.startswith("kdoctor")] == ["kdoctor", "kdoctor.version"]
    assert {"tensorflow", "keras", "numpy", "pydantic", "typer", "rich", "yaml"}.isdisjoint(loaded)


def test_first_use_keeps_pythons_random_numbers() -> None:
    program = "import random; random.seed(3); import kdoctor; kdoctor.guard, kdoctor.Watch; print(random.random())"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert float(done.stdout) == random.Random(3).random()  # noqa: S311 - not for security


def test_kdoctor_exports_its_names_only() -> None:
    import kdoctor

    assert callable(kdoctor.guard)
    with pytest.raises(AttributeError, match="has no attribute 'prefligt'"):
        _ = kdoctor.prefligt


ON_JAX = """
import keras, kdoctor

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(2)])
model.compile("sgd", "mse")
found = kdoctor.preflight(model, (keras.ops.ones((8, 4)), keras.ops.ones((8, 2))))
print({result.status.value for result in found.report.results} - {"skip"})
"""


@pytest.mark.tensorflow
@pytest.mark.smoke_full
def test_nothing_of_a_job_on_another_backend_is_judged() -> None:
    pytest.importorskip("jax")
    environ = {**os.environ, "KERAS_BACKEND": "jax"}
    done = captured([sys.executable, "-c", ON_JAX], check=True, env=environ, timeout=120)
    assert done.stdout == "{'unknown'}\n", done.stderr
