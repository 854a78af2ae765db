from typing import Any

import pytest

from helpers.cases import cases
from helpers.facts import smoke_case, smoke_run
from helpers.saying import said
from kdoctor.facts import SmokeRun, SmokeWorker, Weights
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_backends.checks.smoke.torch_data_parallel import torch_data_parallel

COMPARED = ("ddp", "adam", "nesterov", "clipping", "keras-adam", "keras-clipping", "accumulation", "layers")
METRICS: dict[str, float | None] = {
    f"{whose} {name}": value
    for name, value in (("top_2", 0.8), ("f1", 0.5))
    for whose in ("metric", "reference", "part")
}
STATISTICS = "moving statistics of the ranks differ by up to 0.1"
REFUSED = SmokeWorker(name="rank 0", outcome="raised", phase="build", error_type="RuntimeError", error_message="no")
HEALTHY: dict[str, dict[str, Any]] = {
    **{name: {} for name in COMPARED},
    "metrics-of-classes": {"measures": METRICS},
    "dropout": {"measures": {"masks": 3.0, "equal_masks": 3.0, "equal_masks_of_ranks": 0.0}},
    "batch-normalization": {"weight_deviation": 0.05, "measures": {"statistics differ": 0.1}},
    "uneven-tail": {"weight_deviation": 0.03},
    "model-built-late": {"outcome": "raised", "error_type": "WorkerFailed", "workers": (REFUSED,)},
    "lost-rank": {"workers": (REFUSED,), "measures": {"others_s": 0.8, "patience_s": 25.0}},
}
DISAGREE = Weights(variables=4, mirrored=4, nonfinite=(), replicas_agree=False)


def _run(**changes: dict[str, Any]) -> SmokeRun:
    shown = {name.replace("_", "-"): values for name, values in changes.items()}
    cases = [smoke_case(name, 2, **{**HEALTHY[name], **shown.get(name, {})}) for name in HEALTHY]
    return smoke_run("smoke.torch-data-parallel", 2, *cases, tensorflow=None, torch="2.15.0")


def test_passes_with_differences_by_design() -> None:
    result = compute_check(torch_data_parallel, _run())
    assert result.status is Status.PASS
    assert len(result.evidence) == len(HEALTHY)


@cases(
    ("ddp", {"weight_deviation": 0.1}),
    ("clipping", {"weight_deviation": 0.1}),
    ("keras_adam", {"weight_deviation": 0.1}),
    ("metrics_of_classes", {"measures": {**METRICS, "metric f1": 0.25}}),
    ("layers", {"weights": DISAGREE}),
    ("dropout", {"measures": {"masks": 3.0, "equal_masks": 3.0, "equal_masks_of_ranks": 1.0}}),
    ("uneven_tail", {"weights": DISAGREE}),
    ("batch_normalization", {"outcome": "raised", "error_type": "ValueError"}),
    ("model_built_late", {"outcome": "trained", "error_type": None, "workers": ()}),
    ("lost_rank", {"measures": {"patience_s": 25.0}}),
)
def test_each_defect_is_a_finding_about_its_case(name: str, change: dict[str, Any]) -> None:
    result = compute_check(torch_data_parallel, _run(**{name: change}))
    assert (result.status, result.severity) == (Status.FAIL, Severity.ERROR)
    assert [item.finding.subject for item in result.findings] == [f"training {name.replace('_', '-')}"]


def test_is_unknown_without_evidence_and_skipped_without_torch() -> None:
    for name in ("lost_rank", "dropout", "metrics_of_classes"):
        assert compute_check(torch_data_parallel, _run(**{name: {"measures": {}}})).status is Status.UNKNOWN
    assert compute_check(torch_data_parallel, _run(uneven_tail={"weights": None})).status is Status.UNKNOWN
    absent = {"outcome": "skipped", "skip_reason": "torch is not installed (optional: install torch)"}
    result = compute_check(torch_data_parallel, _run(**dict.fromkeys([n.replace("-", "_") for n in HEALTHY], absent)))
    assert result.status is Status.SKIP
    assert "torch is not installed" in (result.reason or "")


@cases(
    ("batch-normalization", {}, f"equal on all ranks; weights differ from one device by up to 0.05; {STATISTICS}"),
    ("uneven-tail", {}, "equal on all ranks; weights differ from one device by up to 0.03"),
    ("lost-rank", {}, "the others ended after 0.8 s with RuntimeError"),
    ("lost-rank", {"workers": ()}, "the others ended after 0.8 s"),
    ("lost-rank", {"measures": {"patience_s": 25.0}}, "the others still waited after 25 s"),
    ("lost-rank", {"measures": {"patience_s": 25.0}, "workers": ()}, "the loss of a rank was not observed"),
    ("dropout", {}, "equal masks with the rank in the seed in 0 of 3 steps, with the same seed in 3"),
    ("dropout", {"measures": {"masks": 3.0, "equal_masks": 3.0}}, "its masks were not compared"),
    ("model-built-late", {"outcome": "trained", "error_type": None}, "trains without an error"),
    ("metrics-of-classes", {"measures": {**METRICS, "part f1": None}}, "its metrics were not compared with one device"),
)
def test_outcome_of_each_case_is_stated(name: str, change: dict[str, Any], stated: str) -> None:
    result = compute_check(torch_data_parallel, _run(**{name.replace("-", "_"): change}))
    assert said(result)[f"training {name}"] == stated


def test_metrics_of_all_ranks_are_stated_with_those_of_the_first() -> None:
    text = said(compute_check(torch_data_parallel, _run()))["training metrics-of-classes"]
    assert text.endswith("; top_2 0.8 (the first rank alone: 0.8), f1 0.5 (the first rank alone: 0.5)")


@pytest.mark.parametrize("change", [{"outcome": "died", "signal": "SIGSEGV"}, {"workers": ()}])
def test_model_built_late_must_be_refused_by_the_wrapper(change: dict[str, Any]) -> None:
    result = compute_check(torch_data_parallel, _run(model_built_late=change))
    assert [item.finding.expected for item in result.findings] == ["it trains on 2 replicas"]


def test_refusal_of_one_rank_is_enough() -> None:
    other = SmokeWorker(name="rank 1", outcome="raised", error_type="ConnectionError")
    for workers in ((REFUSED, other), (other, REFUSED)):
        result = compute_check(torch_data_parallel, _run(model_built_late={"workers": workers}))
        assert result.status is Status.PASS


def test_rank_that_ended_without_an_error_has_no_error() -> None:
    silent = {"workers": (SmokeWorker(name="rank 0", outcome="died"),)}
    assert said(compute_check(torch_data_parallel, _run(lost_rank=silent)))["training lost-rank"] == (
        "the others ended after 0.8 s"
    )
