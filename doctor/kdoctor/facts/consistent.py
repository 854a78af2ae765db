"""Facts that contradict themselves or others of the machine are not evidence."""

from collections.abc import Mapping
from dataclasses import replace

from kdoctor.facts.base import FactGroup, Facts, Unavailable
from kdoctor.facts.smoke import SmokeRun, SmokeRuns


def consistent(facts: Facts, versions: Mapping[str, int]) -> Facts:
    """The same facts, with the groups and runs that contradict something as unavailable.

    Args:
        facts: of one machine.
        versions: the newest known version of each scenario.
    """
    found = {kind: _refused(group, facts) or group for kind, group in facts.items()}
    runs = facts.get(SmokeRuns)
    if isinstance(runs, SmokeRuns):
        refused = {name: _refused_run(name, run, facts, versions) for name, run in runs.runs.items()}
        found[SmokeRuns] = replace(runs, runs={name: refused[name] or run for name, run in runs.runs.items()})
    return found


def _refused(group: FactGroup | Unavailable, facts: Facts) -> Unavailable | None:
    reason = group.contradiction(facts) if isinstance(group, FactGroup) else ""
    return Unavailable(unavailable=f"its record contradicts itself: {reason}") if reason else None


def _refused_run(
    name: str, run: SmokeRun | Unavailable, facts: Facts, versions: Mapping[str, int]
) -> Unavailable | None:
    if isinstance(run, Unavailable):
        return None
    if run.scenario != name:
        return Unavailable(unavailable=f"its record contradicts itself: it is of {run.scenario}")
    if not 1 <= run.version <= versions.get(name, run.version):
        return Unavailable(unavailable=f"version {run.version} of {name} is not known to this kdoctor")
    return _refused(run, facts)
