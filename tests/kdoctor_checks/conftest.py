"""What holds for every check in these tests.

Findings and evidence are short enough for the report, the commands of findings can be pasted, and no check has a
defect. None depends on the order in which the facts list GPUs, pairs and devices: a check that forgets the first one,
or one side of a pair, fails.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from helpers.evidence.mirrored import ORDERED, mirrored, stated
from helpers.pasting import why_not
from kdoctor.engine import judge
from kdoctor.engine.report import Result
from kdoctor.facts import Gpus
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Unjudged

FAMILIES = {"versions", "host", "environment", "smoke", "job", "watch"}
MOST_CHARACTERS = 60
MOST_OF_A_SUMMARY = 2 * 76


@pytest.fixture(autouse=True)
def _short_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    real = judge._from_outcomes

    def checked(base: Result, outcomes: Sequence[Outcome], *rest: Any) -> Result:
        for outcome in outcomes:
            if isinstance(outcome, Finding):
                remedy = outcome.remedy
                for command in (*remedy.commands, *remedy.look, *outcome.rollback.commands):
                    assert not (why := why_not(command)), (base.id, command, why)
            if base.family in FAMILIES and isinstance(outcome, Finding):
                assert len(outcome.remedy.summary) <= MOST_OF_A_SUMMARY, (base.id, outcome.remedy.summary)
                assert len(outcome.headline) <= MOST_CHARACTERS, (base.id, outcome.headline)
            if isinstance(outcome, Evidence):
                assert len(outcome.brief) <= MOST_CHARACTERS, (base.id, outcome.brief)
        return real(base, outcomes, *rest)

    monkeypatch.setattr(judge, "_from_outcomes", checked)


@pytest.fixture(autouse=True)
def _defects_are_failures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run reports a check that raises or yields nothing as unknown, which would look like a correct answer here."""
    plain = judge._evaluate

    def evaluate(entry: judge.PlannedCheck, arguments: Mapping[str, object], rules: judge.Rules) -> list[Outcome]:
        outcomes = plain(entry, arguments, rules)
        has_gpus = all(item.devices for item in arguments.values() if isinstance(item, Gpus))
        # CUDA numbers the GPUs that trainings use in the driver's order.
        if entry.check.family not in ("smoke", "job", "watch") and entry.check.id not in ORDERED:
            turned = {name: mirrored(item) for name, item in arguments.items()}
            assert stated(plain(entry, turned, rules)) == stated(outcomes), f"{entry.check.id} depends on the order"
        # The tests of all checks together also judge machines that are nothing to a check.
        if request.path.parent.name == entry.check.family:
            assert outcomes or not has_gpus, f"{entry.check.id} yields nothing"
        assert not {NotApplicable, Evidence} <= {type(item) for item in outcomes}, outcomes
        assert not [item for item in outcomes if isinstance(item, Unjudged) and "the check raised" in item.reason], (
            outcomes
        )
        return outcomes

    monkeypatch.setattr(judge, "_evaluate", evaluate)
