"""Turns stored trainings into rows of the version matrix: what each release does with each feature."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from packaging.version import Version

from kdoctor.catalog.load import Catalog
from kdoctor.facts import Facts, Packages, SmokeCase, SmokeRun, SmokeRuns, Target
from kdoctor.matrix.keras import HARMLESS, FeatureResult
from kdoctor.model import Finding
from kdoctor.testing import compute_check
from kdoctor_checks.smoke._cases import describe_end, in_phase

_ELSEWHERE = "judged separately"
"""Marks what a check says about the cases that it was not given."""

_ENDS: Mapping[str, FeatureResult] = {"raised": "raises", "timed-out": "hangs", "died": "crashes", "trained": "wrong"}
_VERSIONS = re.compile(r" \([^()]*\b(?:tf_)?keras [^()]*\)")
_VALUE = re.compile(r"[{\n].*", re.DOTALL)
_LONGEST_MESSAGE = 110
_ROUNDING = 0.01
"""Larger differences from one device are allowed where the examples have other weights, as in an uneven batch."""


@dataclass(frozen=True)
class Cell:
    """What one release does with one feature."""

    result: FeatureResult
    observed: str
    checks: tuple[str, ...] = ()
    """The checks that judged it."""

    @property
    def is_defect(self) -> bool:
        """Whether it must be measured again."""
        return self.result not in HARMLESS


def feature_name(scenario: str, case: str) -> str:
    """``features/clipnorm``: the name of a case in the version matrix."""
    return f"{scenario.removeprefix('smoke.')}/{case}"


def runs_of(facts: Facts) -> dict[str, SmokeRun]:
    """The runs with results in a snapshot, by scenario."""
    found = facts.get(SmokeRuns)
    runs = found.runs if isinstance(found, SmokeRuns) else {}
    return {name: run for name, run in runs.items() if isinstance(run, SmokeRun)}


def judge_run(catalog: Catalog, facts: Facts, run: SmokeRun) -> dict[str, Cell]:
    """The result of each case that a check judges, by feature. A case without a verdict is left out."""
    cells = {case.name: _judge_case(catalog, facts, run, case) for case in run.cases}
    return {feature_name(run.scenario, name): cell for name, cell in cells.items() if cell}


def _judge_case(catalog: Catalog, facts: Facts, run: SmokeRun, case: SmokeCase) -> Cell | None:
    if case.outcome == "skipped":
        return Cell("unsupported", case.skip_reason or "skipped")
    alone = replace(run, cases=(case,), failure=_ELSEWHERE if len(run.cases) > 1 else None)
    known = [group for kind in (Target, Packages) if isinstance(group := facts.get(kind), kind)]
    results = [
        compute_check(check, alone, *known) for check in catalog.checks.values() if check.scenario == run.scenario
    ]
    findings = [judged.finding for result in results for judged in result.findings]
    evidence = [item for result in results for item in result.evidence]
    unjudged = [item for result in results for item in result.unjudged if _ELSEWHERE not in item.reason]
    checks = tuple(result.id for result in results if result.findings or result.evidence)
    if findings:
        return Cell(_ENDS[case.outcome], _problem(case, findings[0], run.keras), checks)
    if unjudged or not evidence:
        return None
    return Cell("right", _right(case.weight_deviation), checks)


def _problem(case: SmokeCase, finding: Finding, keras: str | None) -> str:
    if case.outcome == "raised":
        text = _VALUE.sub(" ...", describe_end(case)).partition(". ")[0]
        message = text if len(text) <= _LONGEST_MESSAGE else f"{text[:_LONGEST_MESSAGE].rpartition(' ')[0]} ..."
        return f"{case.error_type} {in_phase(case.phase)}" if "/" in message else message
    if case.outcome == "timed-out":
        return in_phase(case.phase)
    if case.outcome == "died":
        return f"{case.signal or f'exit status {case.exit_code}'} {in_phase(case.phase)}"
    text = finding.observed.removeprefix(f"{keras or ''} ")
    return _VERSIONS.sub("", text).replace(", above the tolerance of 0.0001", "")


def _right(deviation: float | None) -> str:
    if deviation is None:
        return "as expected"
    size = f"{deviation:.1g}"
    return f"equal to one device within {size}" if deviation <= _ROUNDING else f"as expected; weights differ by {size}"


def rows(results: Mapping[str, Mapping[str, Cell]], package: str) -> list[dict[str, object]]:
    """The rows of the matrix: neighbouring releases with the same result share one.

    Args:
        results: cells by feature, for each release of the package.
        package: ``keras`` or ``tf_keras``.
    """
    releases = sorted(results, key=Version)
    features = list(dict.fromkeys(feature for release in releases for feature in results[release]))
    found: list[dict[str, object]] = []
    for feature in features:
        measured = [(release, results[release][feature]) for release in releases if feature in results[release]]
        for (result, _), group in groupby(measured, key=lambda item: _same(item[1])):
            members = list(group)
            found.append(
                {
                    "feature": feature,
                    "package": package,
                    "releases": [release for release, _ in members],
                    "result": result,
                    "observed": _common([cell for _, cell in members]),
                }
            )
    return found


def _same(cell: Cell) -> tuple[str, str]:
    """What two cells of a row have in common: rounding does not count."""
    return cell.result, "" if cell.result == "right" else cell.observed


def _common(cells: Sequence[Cell]) -> str:
    """The observation of several releases: of equal results, the largest difference."""
    texts = sorted({cell.observed for cell in cells})
    return texts[0] if len(texts) == 1 else max(texts, key=_number)


def _number(text: str) -> float:
    last = text.rpartition(" ")[2]
    try:
        return float(last)
    except ValueError:
        return -1.0
