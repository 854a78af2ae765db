from __future__ import annotations

from helpers.reports import failure, result
from kdoctor.checklist import Checklist, RollbackPolicy, decisions
from kdoctor.model import Assumptions, Decision, Result, Status

POLICY = RollbackPolicy(decides="ada", at_once=("versions.*", "gpu.free"), fix_forward=("gpu",))


def decided(*results: Result, policy: RollbackPolicy | None = POLICY) -> tuple[Decision, ...]:
    checklist = Checklist(
        name="job", version=1, owner="ada", source="here", assumptions=Assumptions(), entries=(), rollback=policy
    )
    return decisions(results, checklist)


def test_failures_are_sorted_by_course_the_gravest_first() -> None:
    assert decided(
        failure("host.memory"), failure("gpu.same-model"), failure("gpu.free"), failure("versions.cuda-build")
    ) == (
        Decision(action="roll back at once", checks=("gpu.free", "versions.cuda-build"), decides="ada"),
        Decision(action="fix forward", checks=("gpu.same-model",), decides="ada"),
        Decision(action="investigate", checks=("host.memory",), decides="ada"),
    )


def test_only_failures_are_decided() -> None:
    assert decided(result("gpu.free"), result("gpu.same-model", Status.UNKNOWN)) == ()


def test_a_checklist_without_the_section_decides_nothing() -> None:
    assert decided(failure("gpu.free"), policy=None) == ()
