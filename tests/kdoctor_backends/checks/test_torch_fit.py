from typing import Any

from helpers.cases import cases
from helpers.facts import smoke_case, smoke_run
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_backends.checks.smoke.torch_fit import torch_fit


def _run(fit: dict[str, Any], distribution: dict[str, Any]) -> SmokeRun:
    cases = smoke_case("fit", 2, **fit), smoke_case("distribution", 2, **distribution)
    return smoke_run("smoke.torch-data-parallel", 2, *cases, tensorflow=None, torch="2.15.0")


EQUAL = {"measures": {"ranks differ": 0.0}}
ALL = {"measures": {"devices used": 2.0}}


def test_passes_if_ranks_agree_and_all_devices_are_used() -> None:
    result = compute_check(torch_fit, _run(EQUAL, ALL))
    assert result.status is Status.PASS
    assert [item.observed for item in result.evidence] == [
        "weights of the ranks differ by up to 0",
        "DataParallel over 2 devices trains on 2",
    ]
    refused = {"outcome": "raised", "error_type": "NotImplementedError"}
    assert compute_check(torch_fit, _run(EQUAL, refused)).status is Status.PASS


@cases(
    ({"measures": {"ranks differ": 0.19}}, ALL, "training fit"),
    (EQUAL, {"measures": {"devices used": 1.0}}, "training distribution"),
)
def test_what_trains_alone_is_a_warning(fit: dict[str, Any], distribution: dict[str, Any], subject: str) -> None:
    result = compute_check(torch_fit, _run(fit, distribution))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert [item.finding.subject for item in result.findings] == [subject]


def test_is_unknown_without_evidence() -> None:
    assert compute_check(torch_fit, _run({"measures": {}}, ALL)).status is Status.UNKNOWN
    assert compute_check(torch_fit, _run(EQUAL, {"measures": {}})).status is Status.UNKNOWN
