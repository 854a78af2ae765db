"""No status gets better by losing information, and no subject is lost in silence."""

from collections.abc import Collection, Mapping
from dataclasses import replace

from helpers.checks import ALL
from helpers.evidence.mutations import Mutation
from helpers.judging import TODAY
from kdoctor.engine.judge import PlannedCheck, Rules, judge
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, SmokeRun, SmokeRuns, Unavailable
from kdoctor.matrix.load import shipped_matrix
from kdoctor.model import Assumptions, Status

Table = Mapping[type[FactGroup], "FactGroup | Unavailable"]
Results = Mapping[str, Result]

CHECKS = tuple(ALL.values())

BETTER = {
    (Status.FAIL, Status.PASS),
    (Status.FAIL, Status.SKIP),
    (Status.UNKNOWN, Status.PASS),
    (Status.UNKNOWN, Status.SKIP),
    (Status.SKIP, Status.PASS),
}

ABSENCE_IS_A_FACT = (
    "gpus.devices.*.clock_event_reasons",
    "gpus.devices.*.errors",
    "gpus.devices.*.processes",
    "gpus.devices.*.fabric_problems",
    "gpus.not_understood",
    "gpus.node_errors",
    "kernel_log.events",
    "kernel.modules",
    "kernel.daemons",
    "pci.devices.*.path",
    "packages.",
    "environment.",
    "job_hosts.",
    "network.",
    "libraries.libraries.",
    "libraries.xla_files",
    "imported_lines.",
    "diagnostics.",
    "smoke.",
)
"""Collections that may have fewer items on another machine. That is a different fact, and not a lost one."""

GPU_GONE = ("gpus.devices", "gpus.devices.*")
"""What a GPU had is gone with it, if another check says that it is missing."""

EXCUSED: Mapping[str, tuple[str, ...]] = {
    "host.limits.*.soft": ("host.locked-memory",),  # None is unlimited
    "gpus.devices.*.fabric_state": ("topology.fabric-manager",),  # then the process is judged
    "host.numa_nodes": ("topology.numa",),  # a node without processors is memory of a GPU
    "gpus.devices": ("topology.iommu", "driver.device-nodes", "topology.fabric-manager"),  # the kernel's own view
    "pci.devices": ("topology.iommu",),
    "libraries.libraries": ("driver.forward-compatibility",),  # driver.libcuda-found is unknown
}
"""Start of a path to the checks that may change so, for the reason in the comment."""


def evaluate(table: Table, assumptions: Assumptions, changed: Collection[type[FactGroup]] | None = None) -> Results:
    """The results of all checks, each without its prerequisites; of those that read a changed group, if given."""
    rules = Rules(assumptions=assumptions, today=TODAY, matrix=shipped_matrix())
    plan = [
        PlannedCheck(check=replace(check, requires=()), severity=check.severity)
        for check in CHECKS
        if changed is None or _reads(check.facts.values(), changed)
    ]
    return {result.id: result for result in judge(plan, table, rules)}


def _reads(asked: Collection[type], changed: Collection[type[FactGroup]]) -> bool:
    return bool(set(asked) & set(changed)) or (SmokeRun in asked and SmokeRuns in changed)


def problems(before: Results, after: Results, changes: Collection[Mutation]) -> list[str]:
    """What is wrong with the results after facts were lost."""
    found = [f"{item.id}: {item.reason}" for item in after.values() if "the check raised" in (item.reason or "")]
    lost = [change for change in changes if not change.path.startswith(ABSENCE_IS_A_FACT) or change.kind == "none"]
    if len(lost) < len(changes) or not all(change.lost for change in changes):
        return found
    excused = {
        check_id
        for change in changes
        for path, ids in EXCUSED.items()
        if change.path.startswith(path)
        for check_id in ids
    }
    is_visible = any(_is_worse(before[check_id], result) for check_id, result in after.items())
    if is_visible and any(change.path in GPU_GONE for change in changes):
        return found
    for check_id, result in after.items():
        old = before[check_id]
        if (old.status, result.status) in BETTER and check_id not in excused:
            found.append(f"{check_id}: {old.status.value} became {result.status.value}")
    if not is_visible:
        found += [
            f"{check_id}: {len(before[check_id].evidence)} subjects became {len(result.evidence)}"
            for check_id, result in after.items()
            if result.status is Status.PASS and len(result.evidence) < len(before[check_id].evidence)
        ]
    return found


def _is_worse(old: Result, new: Result) -> bool:
    """Whether a reader of the report sees that something is missing."""
    return (
        new.status in (Status.FAIL, Status.UNKNOWN)
        and len(new.unjudged) + len(new.findings) > len(old.unjudged) + len(old.findings)
    ) or (old.status is Status.PASS and new.status is not Status.PASS)
