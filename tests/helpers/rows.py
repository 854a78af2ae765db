"""A check's cases as rows: what is given, the status, and what else must be true of the result.

    test_swap = table(
        "host.swap",
        Severity.WARNING,
        passes(host(), of=["swap"]),
        fails(host(swap_used_bytes=4 * GIB), "4.0 GiB in use", commands=()),
        unknown(host(swap_used_bytes=None)),
        unknown(Host),  # was not read
    )

Given are fact groups, types of groups that were not read, assumptions, and mappings: parameters by name, or the reason
why a group was not read by its type. A text must be in the result as ``text_of`` writes it.
"""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from helpers.checks import ALL
from helpers.saying import briefs, said
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import READ_ONLY, Assumptions, Status
from kdoctor.testing import compute_check

Given = FactGroup | type[FactGroup] | Assumptions | VersionMatrix | Mapping[Any, Any] | str
Of = Callable[[Result], object]


def _of_findings(name: str) -> Of:
    return lambda result: [", ".join(getattr(item.finding, name)) for item in result.findings]


def _commands(result: Result) -> tuple[str, ...]:
    """Those of each fix, once."""
    fixes = dict.fromkeys(item.finding.remedy.commands for item in result.findings)
    return tuple(command for commands in fixes for command in commands)


ASPECTS: Mapping[str, Of] = {
    "said": said,
    "briefs": briefs,
    "commands": _commands,
    "look": lambda result: result.findings[0].finding.remedy.look,
    "action": lambda result: result.findings[0].finding.remedy.action,
    "rollback": lambda result: result.findings[0].finding.rollback.commands,
    "expected": lambda result: result.findings[0].finding.expected,
    "after": _of_findings("after"),
    "explained_by": lambda result: [
        *(", ".join(item.finding.explained_by) for item in result.findings),
        *(", ".join(item.explained_by) for item in result.unjudged),
    ],
    "reason": lambda result: result.reason,
    "evidence": lambda result: len(result.evidence),
    "unjudged": lambda result: [item.subject for item in result.unjudged],
}
"""What a row may state with a keyword, besides the subjects (``of``) and what none of them says (``unsaid``)."""


def text_of(result: Result) -> str:
    """Everything that the result says, one line an item."""
    lines = [f"reason: {result.reason}."]
    for judged in result.findings:
        item = judged.finding
        fix = "; ".join((item.remedy.summary, *item.remedy.commands, *item.remedy.look))
        back = "; ".join((item.rollback.why, *item.rollback.commands))
        lines += [f"fail {item.subject}: {item.observed}.", f"  {item.headline}. Expected: {item.expected}."]
        lines += [f"  Fix: {fix}. Rollback: {back}."]
    lines += [f"pass {item.subject}: {item.observed}. {item.brief}." for item in result.evidence]
    lines += [f"unknown {item.subject}: {item.reason}." for item in result.unjudged]
    return "\n".join(lines)


def _subjects(result: Result) -> list[str]:
    """Those that decide the status."""
    if result.status is Status.FAIL:
        return [item.finding.subject for item in result.findings]
    return [item.subject for item in (result.unjudged if result.status is Status.UNKNOWN else result.evidence)]


@dataclass(frozen=True, kw_only=True)
class Row:
    """One case of a check."""

    status: Status
    given: Sequence[Given]
    line: int
    stated: Mapping[str, Any]

    def verify(self, check_id: str, severity: object, common: Sequence[Given]) -> None:
        """Judges what is given, and compares."""
        result = judged(check_id, *common, *self.given)
        text = text_of(result)
        assert (result.status, result.severity) == (self.status, severity), text
        for finding in (item.finding for item in result.findings if item.finding.rollback == READ_ONLY):
            assert all(command.startswith("kdoctor ") for command in finding.remedy.commands), text
        for wanted in (item for item in self.given if isinstance(item, str)):
            assert wanted in text
        for name, value in self.stated.items():
            if name == "unsaid":
                assert value not in f"{said(result)} {briefs(result)}", text
            elif name == "of":
                self._compare_subjects(_subjects(result), value)
            else:
                assert ASPECTS[name](result) == value, text

    @staticmethod
    def _compare_subjects(found: Sequence[str], wanted: int | Sequence[str]) -> None:
        if isinstance(wanted, int):
            assert len(found) == wanted, found
        else:
            same = len(found) == len(wanted) and all(map(str.startswith, found, wanted))
            assert same, (found, wanted)


def judged(check_id: str, *given: Given) -> Result:
    """The result of a check on what is given; of two facts of one type, the last counts."""
    options: dict[str, Any] = {"missing": {}}
    facts: list[FactGroup] = []
    for item in given:
        if isinstance(item, FactGroup):
            facts.append(item)
        elif isinstance(item, type):
            options["missing"][item] = "the probe hung"
        elif isinstance(item, Mapping):
            for key, value in item.items():
                (options if isinstance(key, str) else options["missing"])[key] = value
        elif not isinstance(item, str):
            options["assumptions" if isinstance(item, Assumptions) else "matrix"] = item
    missing = options["missing"]
    recorded = [group for group in facts if missing.get(type(group), "") is not None]
    options["missing"] = {group: reason for group, reason in missing.items() if reason is not None}
    return compute_check(ALL[check_id], *recorded, **options)


def unrecorded(*groups: type[FactGroup]) -> Mapping[type[FactGroup], None]:
    """Groups that a recording lacks, also if the table gives them."""
    return dict.fromkeys(groups)


def _row(status: Status, given: Sequence[Given], stated: Mapping[str, Any]) -> Row:
    return Row(status=status, given=given, line=sys._getframe(2).f_lineno, stated=stated)


def passes(*given: Given, **stated: Any) -> Row:
    """A row of a machine that passes."""
    return _row(Status.PASS, given, stated)


def fails(*given: Given, **stated: Any) -> Row:
    """A row of a machine that fails."""
    return _row(Status.FAIL, given, stated)


def unknown(*given: Given, **stated: Any) -> Row:
    """A row of a machine that cannot be judged."""
    return _row(Status.UNKNOWN, given, stated)


def skips(*given: Given, **stated: Any) -> Row:
    """A row of a machine that is not judged."""
    return _row(Status.SKIP, given, stated)


def table(check_id: str, severity: object, *rows: Row, given: Sequence[Given] = ()) -> Callable[[Row], None]:
    """The test of these rows. ``given`` comes before what each row gives."""

    @pytest.mark.parametrize("row", rows, ids=[f"{row.status.value}-{row.line}" for row in rows])
    def test(row: Row) -> None:
        row.verify(check_id, severity, given)

    return test
