"""The larger tiers with the real TensorFlow and JAX on two CPU replicas, compared with docs/smoke.md."""

import re
from pathlib import Path

import pytest

from helpers import smoke
from kdoctor.catalog.load import load_catalog
from kdoctor.checklist.for_scenarios import checklist_of, choose_scenarios
from kdoctor.defects import load_defects
from kdoctor.facts import SmokeRun, SmokeRuns
from kdoctor.smoke.scenario import Framework
from kdoctor.smoke.session import SmokeSettings
from kdoctor.testing import compute_check

PAGE = Path(__file__).parents[2] / "docs" / "smoke.md"
ROW = re.compile(r"^\| (smoke\.[a-z-]+) \| (standard|full) \| (\w+)[^|]* \| (\w+)[^|]* \|$", re.MULTILINE)
TABLE = re.compile(r"^\| check \| tier \| (?P<one>[^|]+) \| (?P<other>[^|]+) \|$", re.MULTILINE)


def _measured() -> dict[tuple[str, str], tuple[str, str]]:
    """Check and flavour to tier and status, from both tables of the page, and of each defect of Keras 3."""
    page = PAGE.read_text(encoding="utf-8")
    starts = [match.start() for match in TABLE.finditer(page)]
    flavours: list[tuple[str, str]] = [("keras", "tf_keras"), ("jax", "older jax")]
    tiers = {scenario.id: scenario.tier for scenario in load_catalog().scenarios.values()}
    of_defects = {
        (defect.check, flavour): (tiers[defect.scenario], status)
        for defect in load_defects().values()
        for flavour, status in (("keras", "fail"), ("tf_keras", "pass"))
        if tiers[defect.scenario] != "quick"
    }
    return of_defects | {
        (check, flavour): (tier, status)
        for start, end, names in zip(starts, [*starts[1:], len(page)], flavours, strict=True)
        for check, tier, *statuses in ROW.findall(page[start:end])
        for flavour, status in zip(names, statuses, strict=True)
    }


MEASURED = _measured()


def outcomes(tier: str, *, legacy: bool = False, framework: Framework = "tensorflow") -> dict[str, str]:
    """Check to its status, with the scenarios of one tier and framework."""
    catalog = load_catalog()
    of_tier = [item for item in choose_scenarios(catalog, tier=tier) if item.tier == tier]
    scenarios = [item for item in of_tier if item.framework == framework]
    where = smoke.context(TF_USE_LEGACY_KERAS="1" if legacy else "0")
    runs = smoke.run_scenarios(scenarios, SmokeSettings(devices_kind="cpu", replicas=2), where)
    entries = checklist_of(catalog, scenarios, "tier", replicas=2).entries
    checks = [entry.check for entry in entries if entry.check.scenario]  # without the checks of GPU samples
    return {check.id: compute_check(check, _run(runs, check.scenario)).status.value for check in checks}


def _run(runs: SmokeRuns, scenario: str | None) -> SmokeRun:
    run = runs.runs[scenario or ""]
    assert isinstance(run, SmokeRun), run
    return run


def measured(tier: str, flavour: str) -> dict[str, str]:
    """Check to its documented status."""
    return {check: status for (check, which), (of, status) in MEASURED.items() if (which, of) == (flavour, tier)}


@pytest.mark.smoke_full
def test_standard_tier_matches_docs() -> None:
    assert outcomes("standard", legacy=False) == measured("standard", "keras")


@pytest.mark.smoke_full
def test_standard_tier_on_jax_matches_docs() -> None:
    statuses = outcomes("standard", framework="jax")
    assert statuses == measured("standard", "jax")
    older = {check: status for check, status in measured("standard", "older jax").items() if status != "not"}
    assert older.items() <= statuses.items()


@pytest.mark.smoke_full
@pytest.mark.parametrize(("tier", "legacy"), [("standard", True), ("full", False), ("full", True)])
def test_other_tiers_and_keras_match_docs(tier: str, *, legacy: bool) -> None:
    assert outcomes(tier, legacy=legacy) == measured(tier, "tf_keras" if legacy else "keras")


def test_docs_have_a_row_for_every_check_of_the_wider_tiers() -> None:
    catalog = load_catalog()
    wider = {
        scenario.id: scenario.tier
        for scenario in catalog.scenarios.values()
        if scenario.tier not in ("quick", "job") and scenario.framework != "torch"  # its table is by case
    }
    checks = {check.id: wider[check.scenario] for check in catalog.checks.values() if check.scenario in wider}
    assert {check: tier for (check, _), (tier, _) in MEASURED.items()} == checks
