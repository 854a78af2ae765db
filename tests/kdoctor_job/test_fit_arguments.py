"""``kdoctor.preflight`` with other arguments of ``fit``."""

from typing import Any

import pytest

from helpers.kdoctor_job.job_runs import trials
from helpers.tiers import asked_for, tiered

FINE = ("class weights and validation", "weights and split of arrays", "forgets weights, without any")
WRONG = {"forgets weights": {"job.equals-one-device"}, "adds up validation": {"job.metrics", "job.evaluate"}}
"""Jobs with a defect that shows with these arguments only, and the checks that find it."""
REFUSED = {
    "no argument of fit": "'class_weights'; did you mean 'class_weight'?",
    "no dictionary": "a list, expected a dictionary",
    "two kinds of weights": "either class_weight or sample_weight",
    "sample weights of a dataset": "sample_weight with arrays",
    "split of a dataset": "validation_split with arrays",
    "impossible split": "validation_split is 2",
    "impossible size": "batch_size is -1",
    "empty validation": "validation_data: it is empty",
    "endless validation": "validation_data is infinite",
    "no epoch": "epochs is 3, and initial_epoch is 3",
    "unsavable model": "ModelCheckpoint cannot save the model: NotImplementedError: no configuration",
}
"""Arguments that ``fit`` refuses, and a decisive part of the finding."""
TIMED = {"job.input-bound"}

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def found(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The jobs, in one child process."""
    return trials("fits", *asked_for(request))


@pytest.mark.parametrize("name", tiered(FINE, ()))
def test_correct_job_passes(found: dict[str, Any], name: str) -> None:
    assert (found[name]["findings"].keys() - TIMED, found[name]["unknown"]) == (set(), {})


@pytest.mark.parametrize("name", tiered(WRONG, ()))
def test_defect_that_shows_with_an_argument_is_found(found: dict[str, Any], name: str) -> None:
    assert found[name]["findings"].keys() - TIMED == WRONG[name]
    if name == "adds up validation":
        assert any("val_loss is" in one for one in found[name]["findings"]["job.metrics"])


@pytest.mark.parametrize("name", ["validation is read once"])
def test_validation_by_a_generator_is_unknown(found: dict[str, Any], name: str) -> None:
    assert (found[name]["findings"].keys() - TIMED, found[name]["unknown"].keys()) == (set(), {"job.metrics"})


@pytest.mark.parametrize("name", REFUSED)
def test_arguments_that_fit_refuses_are_a_finding(found: dict[str, Any], name: str) -> None:
    assert found[name]["findings"].keys() - TIMED == {"job.model-and-data"}
    (observed,) = found[name]["findings"]["job.model-and-data"]
    assert REFUSED[name] in observed
    assert ["at least one batch" in fix for fix in found[name]["fixes"]] == [name == "empty validation"]
