"""Another number of GPUs for one run (``--gpus``)."""

from collections.abc import Iterable
from dataclasses import replace

from kdoctor.catalog.load import Catalog
from kdoctor.checklist.resolve import Checklist, ChecklistEntry, ScenarioEntry
from kdoctor.engine.judge import PlannedCheck
from kdoctor.model import GpuAssumption

CPU_REPLICAS = 2
"""Logical CPU devices of a training that no GPU is expected for: the fewest with communication between replicas."""


def with_gpus(checklist: Checklist, catalog: Catalog, count: int) -> Checklist:
    """The checklist with exactly that number of usable GPUs, and with the checks that judge the number.

    With 0, GPU checks are skipped and the trainings run on logical CPU devices, as in ``cpu-smoke``.
    """
    gpus = replace(checklist.assumptions.gpus or GpuAssumption(), count=count, at_least=None)
    changed = replace(checklist, assumptions=replace(checklist.assumptions, gpus=gpus))
    if count == 0:
        return replace(changed, scenarios=tuple(map(_on_cpu, checklist.scenarios)))
    listed = {entry.check.id for entry in checklist.entries}
    judging = [check for check in catalog.checks.values() if "gpus.count" in check.judges and check.id not in listed]
    added = (ChecklistEntry(check=check, severity=check.severity) for check in judging)
    return replace(changed, entries=(*checklist.entries, *added))


def without_gpus(checks: Iterable[PlannedCheck]) -> tuple[PlannedCheck, ...]:
    """The plan in which an option leaves out what the checklist asks of GPUs."""
    why = "no GPU is expected (--gpus 0)"
    return tuple(
        replace(entry, deselected=entry.deselected or why) if entry.check.needs_gpus else entry for entry in checks
    )


def _on_cpu(entry: ScenarioEntry) -> ScenarioEntry:
    if entry.replicas != "gpus":
        return entry
    return replace(entry, replicas=CPU_REPLICAS, expect=entry.scenario.expect)
