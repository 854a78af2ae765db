"""Public helpers to test checks: healthy facts, and the evaluation of one check on them.

result = compute_check(shared_memory, healthy(Host, shm_total_bytes=64 * 2**20))
assert result.status is Status.FAIL
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from functools import cache
from importlib import resources
from typing import Any, TypeVar

from kdoctor.catalog.load import load_catalog
from kdoctor.check import Check
from kdoctor.engine.judge import PlannedCheck, Rules, judge
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, Facts, Gpus, SmokeRun, SmokeRuns, Unavailable
from kdoctor.matrix.load import shipped_matrix
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Assumptions
from kdoctor.snapshot.document import loads

__all__ = ["compute_check", "fact_table", "healthy", "healthy_node", "with_gpu"]

Group = TypeVar("Group", bound=FactGroup)


@cache
def healthy_node() -> Facts:
    """A node with 8 H100 GPUs on which every built-in check passes or does not apply, but versions.keras-features."""
    text = resources.files(__name__).joinpath("h100-node.json").read_text(encoding="utf-8")
    return loads(text, load_catalog().fact_groups).facts


def healthy(group: type[Group], **changes: Any) -> Group:
    """The facts of a healthy node with 8 H100 GPUs.

    Args:
        group: the fact group, or ``SmokeRun`` for a run of ``smoke.baseline``.
        changes: fields that differ from the healthy node.

    Raises:
        KeyError: the node has no such group (the group of a plugin, for example).
    """
    found = _facts_of(group)
    if not isinstance(found, group):
        raise KeyError(group.group)
    return replace(found, **changes)


def _facts_of(group: type[FactGroup]) -> object:
    if group is not SmokeRun:
        return healthy_node()[group]
    runs = healthy_node()[SmokeRuns]
    return runs.runs["smoke.baseline"] if isinstance(runs, SmokeRuns) else runs


def with_gpu(gpus: Gpus, index: int, **changes: Any) -> Gpus:
    """The same GPUs with changed fields of one of them."""
    devices = (replace(gpu, **changes) if gpu.index == index else gpu for gpu in gpus.devices)
    return replace(gpus, devices=tuple(devices))


def fact_table(*facts: FactGroup, scenario: str | None = None) -> dict[type[FactGroup], FactGroup | Unavailable]:
    """Groups by type. A later group replaces an earlier one of its type. A ``SmokeRun`` is the run of its scenario."""
    table: dict[type[FactGroup], FactGroup | Unavailable] = {}
    for group in facts:
        if isinstance(group, SmokeRun):
            name = scenario or group.scenario
            table[SmokeRuns] = SmokeRuns(runs={name: replace(group, scenario=name)})
        else:
            table[type(group)] = group
    return table


def compute_check(
    check: Check,
    *facts: FactGroup,
    assumptions: Assumptions | None = None,
    missing: Mapping[type[FactGroup], str | Unavailable] | None = None,
    matrix: VersionMatrix | None = None,
    **parameters: Any,
) -> Result:
    """Evaluate a check on these facts only. Groups that are not given were not collected.

    Args:
        check: the check, evaluated without its prerequisites.
        facts: groups of facts; of two groups of the same type, the last one counts.
        assumptions: the checklist's assumptions.
        missing: groups that could not be read, with the reason.
        matrix: the version matrix; the shipped one by default.
        parameters: the check's parameters, as a checklist would set them.

    Raises:
        Exception: what the check raises. In a run, it would be unknown for that reason.
    """
    table = fact_table(*facts, scenario=check.scenario)
    for group, why in (missing or {}).items():
        table[group] = why if isinstance(why, Unavailable) else Unavailable(unavailable=why)
    plan = [PlannedCheck(check=check, severity=check.severity, parameters=parameters)]
    rules = Rules(
        assumptions=assumptions or Assumptions(), today=date(2026, 1, 1), matrix=matrix or shipped_matrix(), raises=True
    )
    (result,) = judge(plan, table, rules)
    return result
