"""``kdoctor.preflight`` on jobs that cannot be copied or compared, and on features that Keras 3 gets wrong."""

from typing import Any

import pytest

from helpers.kdoctor_job.job_runs import trials
from helpers.tiers import asked_for, tiered

UNKNOWN = {
    "compiled step with side effect": "a step changes os.environ outside",
    "step that writes a file": "WritesFile.train_step opens a file",
    "step whose function saves an array": "_save_array writes files (save)",
    "no step changes a weight": "no weight changes",
    "fit with a loop": "TrainsItself overrides fit",
    "draws at inference": "random numbers that kdoctor cannot turn off",
}
"""Jobs that are not compared with one device, and a decisive part of the reason."""
FOUND = {
    "clipping": ("job.clipping", "clipnorm=0.02 on 2 replicas: weights differ from one device's by"),
    "steps": ("job.steps-per-execution", "8 on 2 replicas: InvalidArgumentError"),
    "dropout": ("job.random-layers", "dropout on 2 replicas: equal numbers"),
    "own dropout of a list": ("job.random-layers", "listed_dropout on 2 replicas: equal numbers"),
    "accumulation": ("job.options", "gradient_accumulation_steps=2 on 2 replicas: RuntimeError"),
    "averages": ("job.options", "use_ema=True on 2 replicas: RuntimeError"),
    "function: two optimizers": ("job.options", "an optimizer that the first train_step builds on 2 replicas: Inv"),
    "sampling": ("job.random-layers", "sampling on 2 replicas: equal numbers"),
    "sums gradients": ("job.equals-one-device", "weights differ from one device's (relative difference"),
    "clips in train_step": ("job.options", "ClipsByHand.train_step on 2 replicas: wei"),
    "clips in its optimizer": ("job.options", "LimitsGradients.apply_gradients on 2 replicas: wei"),
    "sharpens a batch": ("job.equals-one-device", "weights differ from one device's (relative difference"),
    "adds up gradients": ("job.options", "ClipsByHand.train_step on 2 replicas: wei"),
    "counts examples": ("job.options", "counts/seen on 2 replicas: weights differ"),
    "keeps the least": ("job.options", "keeps_least/least on 2 replicas: weights differ"),
    "seed that never changes": ("job.random-layers", "same_noise on 2 replicas: equal numbers"),
    "noise of the trace": ("job.random-layers", "NumPy draws when a step is traced"),
    "mixed examples": ("job.equals-one-device", "weights differ from one device's (relative difference"),
    "mixes neighbors": ("job.equals-one-device", "weights differ from one device's (relative difference"),
    "added sum": ("job.equals-one-device", "weights differ from one device's (relative difference"),
    "pairs": ("job.equals-one-device", "weights differ from one device's (relative difference"),
    "of its share": ("job.equals-one-device", "weights differ from one device's (relative difference 0.00"),
    "fills a device, pairs": ("job.equals-one-device", "weights differ from one device's (relative difference"),
    "function: loss with a mean": ("job.state", "of_loss differ"),
    "added mean": ("job.state", "batch_normalization"),
    "rounding that grows": ("job.state", "batch_normalization"),  # and its weights are compared in float64
    "positions": ("job.options", "embedding"),
    "positions made in build": ("job.options", "made_in_build/embedding"),
    "looks up positions": ("job.options", "looks_up/table"),
    "added and synchronized": ("job.options", "adds_loss"),
    "masks": ("job.masked-loss", "masking on 2 replicas: weights differ from one device's by"),
    "ignored class": ("job.masked-loss", "ignore_class=0 on 2 replicas: weights differ from one device's by"),
    "metric without its argument": ("job.metrics", "counting is 16 instead of 8"),
    "compile that keeps nothing": ("job.options", "an optimizer that the first train_step builds on 2 replicas: Inv"),
    "loss over a strategy": ("job.equals-one-device", "weights differ from one device's (relative difference 0.49"),
    "metric of a maximum": ("job.metrics", "largest_output is "),
    "metric of no hits": ("job.metrics", "squared_hits is "),
}
"""Jobs with one problem, the check that fails and the start of its finding."""
ALSO = {"sums gradients": {"job.random-layers"}, "keeps the least": {"job.state"}}
"""Jobs of these that have another finding, too: numbers that train_step draws alike, a variable of one replica."""
CAUSES = {
    "mixed examples": "the outputs of an example depend on the others",
    "sharpens a batch": "what train_step does with a batch",
    "mixes neighbors": "what train_step does with a batch",
    "added sum": "what layers add to the loss is not a mean",
    **dict.fromkeys(
        ("pairs", "fills a device, pairs", "of its share"),
        "the loss of a batch does not follow from those of its shares",
    ),
}
"""Jobs of these whose finding names what is computed from a whole batch."""
FINE = (
    *("trained before", "rate from a function", "weighted metrics", "weighted data"),
    *("clipping fixed", "steps fixed", "dropout fixed", "own dropout", "averages fixed", "positions fixed"),
    *("optimizer without configuration", "attribute set later", "train_step set on the object"),
    *("loss with a counter", "loss over the model", "fills a device", "drops at inference"),
    *("fit with other data", "last bit", "turns on", "function: random features", "two optimizers built"),
    "copies weights",  # Keras trains it incorrectly on one device only, if fit builds its optimizer
)
TWO_CAUSES = {"positions and ignored class": {"job.options": "embedding", "job.masked-loss": "ignore_class=0 on 2"}}
"""Jobs that equal one device only without two of their options, and the starts of both findings."""
TIMED = {"job.input-bound"}
"""Depends on the speed of this machine."""
QUICK = {
    *("loss over the model", "compiled step with side effect"),
    *("clipping", "weighted data", "mixed examples", "metric of no hits", "fills a device"),
}

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def jobs(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The jobs, in one child process."""
    return trials("hazards", str(tmp_path_factory.mktemp("jobs")), *asked_for(request))


@pytest.mark.parametrize("name", tiered([*UNKNOWN, *FOUND, *TWO_CAUSES, *FINE], QUICK))
def test_preflight_changes_nothing_of_the_job(jobs: dict[str, Any], name: str) -> None:
    assert jobs[name]["changed"] == []


@pytest.mark.parametrize("name", tiered(UNKNOWN, QUICK))
def test_job_that_cannot_be_compared_is_unknown_with_the_reason(jobs: dict[str, Any], name: str) -> None:
    found = jobs[name]
    assert found["findings"].keys() - TIMED == set()
    assert found["verdict"] == "unknown"
    assert UNKNOWN[name] in found["unknown"]["job.equals-one-device"]


@pytest.mark.parametrize("name", tiered(FOUND, QUICK))
def test_feature_that_keras_gets_wrong_is_the_only_finding(jobs: dict[str, Any], name: str) -> None:
    check, start = FOUND[name]
    also = {"job.evaluate", "job.metrics"} if name.startswith(("metric", "loss over")) or name in CAUSES else set()
    found = jobs[name]["findings"].keys() - TIMED
    assert {check, *ALSO.get(name, ())} <= found <= {check, *ALSO.get(name, ()), *also}
    (observed,) = jobs[name]["findings"][check][:1]
    assert CAUSES.get(name, "") in observed
    assert "and 3 more differ" not in observed  # 30 layers have more statistics than 6
    assert observed.startswith(start)
    assert jobs[name]["unknown"].keys() <= ({"job.metrics"} if check == "job.equals-one-device" else set())


@pytest.mark.parametrize("name", tiered(TWO_CAUSES, ()))
def test_two_causes_are_both_named(jobs: dict[str, Any], name: str) -> None:
    found = {check: observed[0] for check, observed in jobs[name]["findings"].items() if check not in TIMED}
    assert found.keys() == TWO_CAUSES[name].keys()
    assert [check for check, start in TWO_CAUSES[name].items() if not found[check].startswith(start)] == []


@pytest.mark.parametrize("name", tiered(FINE, QUICK))
def test_corrected_and_unusual_jobs_pass(jobs: dict[str, Any], name: str) -> None:
    assert (jobs[name]["findings"].keys() - TIMED, jobs[name]["unknown"]) == (set(), {})
    assert jobs[name]["verdict"] == "pass"
