"""Each known failure is found by a check or documented as one that no check finds, with a source and lint rules."""

from collections.abc import Sequence
from importlib import resources
from typing import Any

import yaml

from helpers.cases import cases
from helpers.checks import ALL
from helpers.facts import cpu_host, h100_node
from kdoctor.defects import load_defects
from kdoctor.facts import FactGroup
from kdoctor.model import Assumptions, GpuAssumption, Status
from kdoctor.testing import compute_check
from kdoctor_lint.registry import RULES

CHECKS = ALL


def modes() -> list[dict[str, Any]]:
    text = resources.files("kdoctor_checklists.failures").joinpath("failure-modes.yaml").read_text(encoding="utf-8")
    found: list[dict[str, Any]] = yaml.safe_load(text)["failure_modes"]
    return found


MODES = {mode["id"]: mode for mode in modes()}


def test_every_failure_is_caught_or_documented_as_not_detectable() -> None:
    caught = {mode for check in CHECKS.values() for mode in check.failure_modes}
    caught -= {defect.failure for defect in load_defects().values()}
    assert caught <= set(MODES)
    for name, mode in MODES.items():
        assert (name in caught) != ("not_before_the_job" in mode), name


def test_all_failures_are_described_with_a_source() -> None:
    assert len(modes()) == len(MODES)
    for mode in modes():
        assert mode["symptom"]
        assert mode["cause"]
        assert mode["source"]
        assert mode["kind"] in {"registration", "crash", "hang", "silent", "slow"}


def test_named_lint_rules_exist() -> None:
    assert {rule for mode in modes() for rule in mode.get("lint", ())} <= set(RULES)


@cases((h100_node(8), Assumptions()), (cpu_host(), Assumptions(gpus=GpuAssumption(count=0))), ids=["and-cuda", "cpu"])
def test_healthy_environment_has_no_findings_about_versions(facts: Sequence[FactGroup], assumed: Assumptions) -> None:
    for check in CHECKS.values():
        # Every Keras 3 has some defects, and these environments have no JAX.
        if check.family == "versions" and check.id not in {"versions.keras-features", "versions.jax-installed"}:
            result = compute_check(check, *facts, assumptions=assumed)
            assert result.status in {Status.PASS, Status.SKIP}, (check.id, result.reason)
