from __future__ import annotations

import pytest

from helpers.facts import environment
from helpers.judging import compute_check
from kdoctor.facts import Environment
from kdoctor.model import Assumptions, Status
from kdoctor.report_model import Result
from kdoctor_checks.environment.variables_expected import variables_expected


def judged(found: Environment, **wanted: str) -> Result:
    return compute_check(variables_expected, found, assumptions=Assumptions(environment=wanted))


@pytest.mark.parametrize(
    ("value", "wanted", "status"),
    [
        ("true", "true", Status.PASS),
        ("True", "true", Status.FAIL),
        ("", "true", Status.FAIL),
        (None, "true", Status.FAIL),
        (None, "unset", Status.PASS),
        ("", "unset", Status.FAIL),
        ("1", "unset", Status.FAIL),
        ("", "", Status.PASS),
    ],
)
def test_values_are_exact(value: str | None, wanted: str, status: Status) -> None:
    found = environment() if value is None else environment(TF_FORCE_GPU_ALLOW_GROWTH=value)
    assert judged(found, TF_FORCE_GPU_ALLOW_GROWTH=wanted).status is status


def test_the_way_there_and_back_are_commands() -> None:
    finding = judged(environment(NCCL_DEBUG="a b"), NCCL_DEBUG="unset").findings[0].finding
    assert finding.remedy.commands == ("unset NCCL_DEBUG",)
    assert finding.rollback.commands == ("export NCCL_DEBUG='a b'",)
    finding = judged(environment(), NCCL_DEBUG="INFO").findings[0].finding
    assert finding.remedy.commands == ("export NCCL_DEBUG=INFO",)
    assert finding.rollback.commands == ("unset NCCL_DEBUG",)


def test_a_variable_that_was_not_looked_for_is_unknown() -> None:
    assert judged(environment(), MY_OWN="unset").status is Status.UNKNOWN
    assert judged(environment(), MY_OWN="1").status is Status.UNKNOWN
    assert judged(Environment(variables={}), NCCL_DEBUG="unset").status is Status.UNKNOWN


def test_a_checklist_without_variables_is_a_skip_and_unread_ones_unknown() -> None:
    assert compute_check(variables_expected, environment()).status is Status.SKIP
    wanted = Assumptions(environment={"NCCL_DEBUG": "INFO"})
    assert compute_check(variables_expected, assumptions=wanted).status is Status.UNKNOWN
