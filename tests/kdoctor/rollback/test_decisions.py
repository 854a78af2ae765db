from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import pytest

from helpers.facts import gpus, kernel, package
from helpers.reports import failure, finding, waiver
from helpers.rollbacks import planned, with_packages
from kdoctor.engine.report import DecidedStep, Decision, JudgedFinding, Result
from kdoctor.model import Finding, Remedy
from kdoctor.rollback.decisions import with_steps
from kdoctor.rollback.document import RollbackPlan

Wanted = Literal["roll back at once", "fix forward", "investigate"]


def about(subject: str, command: str = "sudo reboot") -> Finding:
    remedy = Remedy.reboot(f"Run {command}:", command)
    return finding(subject, remedy=remedy)


FAILED = (
    failure("gpu.free", about("GPU 0"), about("GPU 1"), about("GPU 2", "sudo nvidia-smi -r")),
    failure("gpu.ecc-errors", about("GPU 0")),
)
FIXES = [("sudo reboot",), ("sudo nvidia-smi -r",)]


def steps(
    action: Wanted, results: Sequence[Result] = FAILED, plan: RollbackPlan | None = None
) -> Sequence[DecidedStep]:
    checks = tuple(result.id for result in results)
    (decision,) = with_steps([Decision(action=action, checks=checks)], [failure("host.swap"), *results], plan)
    assert (decision.action, decision.checks) == (action, checks)
    return decision.steps


def test_investigation_starts_with_the_explanation_of_each_check() -> None:
    assert [step.commands for step in steps("investigate")] == [
        ("kdoctor explain gpu.free",), ("kdoctor explain gpu.ecc-errors",)
    ]  # fmt: skip


def test_fixing_forward_takes_each_fix_once() -> None:
    assert [step.commands for step in steps("fix forward")] == FIXES


def test_waived_finding_is_not_fixed() -> None:
    waived = replace(FAILED[0], findings=(JudgedFinding(finding=about("GPU 0"), waiver=waiver("gpu.free")),))
    assert list(steps("fix forward", [waived])) == []


@pytest.mark.parametrize("plan", [None, planned()], ids=["no lock", "no drift"])
def test_without_a_plan_the_fixes_are_suggested(plan: RollbackPlan | None) -> None:
    reason, *rest = steps("roll back at once", plan=plan)
    assert reason.commands == ()
    assert ("job.lock.yaml" in reason.summary) == (plan is not None)
    assert [step.commands for step in rest] == FIXES


def test_rollback_takes_the_steps_of_the_plan_and_checks_again() -> None:
    plan = planned(with_packages(package("keras", "3.6.0")), gpus(7, driver_version="1"), kernel(version="1"))
    found = steps("roll back at once", plan=plan)
    assert [step.commands for step in found] == [
        *(step.commands for step in plan.steps), *(() for _ in plan.by_hand), (plan.again,)
    ]  # fmt: skip
    assert len(plan.steps) == 2
    assert found[0].summary == plan.steps[0].title
    assert found[1].summary == f"{plan.steps[1].title} (needs root and a reboot)"
    assert [step.summary for step in found[2:-1]] == [f"Manually: {text}." for text in plan.by_hand]
    assert plan.by_hand


def test_place_of_a_step_is_named() -> None:
    plan = planned(with_packages(package("keras", "3.6.0")))
    elsewhere = plan.model_copy(update={"steps": (plan.steps[0].model_copy(update={"elsewhere": "on the host"}),)})
    assert steps("roll back at once", plan=elsewhere)[0].summary == f"{plan.steps[0].title} (on the host)"
