from typing import Any

from helpers.cases import cases
from helpers.reports import failure
from kdoctor.checklist.policy import decisions
from kdoctor.checklist.resolve import Checklist
from kdoctor.checklist.schema import RollbackPart
from kdoctor.engine.report import Decision, Result
from kdoctor.model import Assumptions

POLICY = RollbackPart(decides="ada", at_once=("versions.*", "gpu.free"), fix_forward=("gpu",))


def decided(*results: Result, policy: RollbackPart | None = POLICY) -> tuple[Decision, ...]:
    checklist = Checklist(
        name="job", version=1, owner="ada", source="here", assumptions=Assumptions(), entries=(), rollback=policy
    )
    return decisions(results, checklist)


@cases(
    ({"at_once": ("gpu",), "fix_forward": ("gpu.free",)}, "fix forward", "fix_forward: gpu.free"),
    ({"at_once": ("gpu",), "fix_forward": ("gpu.*",)}, "fix forward", "fix_forward: gpu.*"),
    ({"at_once": ("severity:error",), "investigate": ("gpu",)}, "investigate", "investigate: gpu"),
    ({"at_once": ("severity:error",)}, "roll back at once", "at_once: severity:error"),
    ({"at_once": ("severity:warning",)}, "investigate", "no rule covers it"),
    ({"at_once": ("gpu.f*",), "fix_forward": ("gpu.*",)}, "roll back at once", "at_once: gpu.f*"),
)
def test_most_specific_rule_wins_and_ties_go_to_the_most_severe(
    policy: dict[str, Any], action: str, criterion: str
) -> None:
    (decision,) = decided(failure("gpu.free"), policy=RollbackPart(decides="ada", within="an hour", **policy))
    assert (decision.action, decision.criteria, decision.within) == (action, (criterion,), "an hour")
