"""What changed since the lock was recorded, and which failures the changes may explain."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase

from kdoctor.engine.report import Drift, DriftChange, Result
from kdoctor.lock.document import Lock
from kdoctor.lock.facts import STEP_SECONDS, Recorded
from kdoctor.model import Status

_NOT_COMPARED = frozenset({"checks", "scenarios"})
"""Results of checks are not causes; scenarios are compared case by case."""

_OF_FIXED_NAMES = frozenset({"python", "tensorflow", "keras", "host", "driver"})
"""Sections in which a fact that the lock lacks was unknown then, or not yet recorded by that kdoctor. Not drift."""

_NAMED = 10
"""Added if a finding names the thing that changed, which outweighs everything else."""

_NAMEABLE = frozenset({"packages", "environment"})
"""Sections whose facts have names that findings use."""

EXPLAINS: Mapping[str, Mapping[str, int]] = {
    "packages.keras": {"versions.keras*": 9, "smoke.*": 8},
    "packages.tf-keras": {"versions.keras*": 9, "smoke.*": 6},
    "packages.tensorflow*": {"versions.*": 8, "smoke.*": 7, "gpu.replicas-match": 6},
    "packages.nvidia-*": {"gpu.replicas-match": 7, "driver.*": 4, "versions.*": 5, "smoke.*": 5},
    "packages.*": {"versions.*conflicts": 4, "versions.packages-expected": 4, "smoke.*": 1},
    "packages.numpy": {"smoke.*": 3},
    "conda.*": {"versions.*": 5, "driver.*": 3, "smoke.*": 4},
    "keras.*": {
        "smoke.*": 8,
        "environment.variables-expected": 8,
        "versions.keras*": 8,
        "versions.runtime-expected": 8,
    },
    "tensorflow.*": {"versions.*": 7, "smoke.*": 6, "gpu.replicas-match": 5},
    "python.*": {"versions.*": 6, "smoke.*": 2},
    "libraries.*": {"gpu.replicas-match": 8, "versions.*": 6, "driver.*": 4, "smoke.*": 6},
    "driver.*": {
        "driver.*": 9,
        "versions.driver*": 9,
        "versions.runtime-expected": 7,
        "gpu.*": 7,
        "topology.*": 4,
        "smoke.*": 4,
    },
    "gpus.*": {"gpu.*": 9, "topology.*": 6, "smoke.*": 5, "driver.*": 3},
    "topology.*": {"topology.*": 9, "smoke.*": 1},
    "host.kernel": {"driver.*": 7, "gpu.*": 4},
    "host.os-release": {"driver.*": 3},
    "host.container": {"gpu.*": 4},
    "host.image": {"versions.*": 7, "driver.*": 3, "smoke.*": 6},
    "host.*": {"host.*": 8, "smoke.*": 1},
    "environment.CUDA_VISIBLE_DEVICES": {"gpu.*": 8, "smoke.*": 6},
    "environment.LD_LIBRARY_PATH": {"gpu.replicas-match": 7},
    "environment.LD_*": {"smoke.*": 6},
    "environment.TF_USE_LEGACY_KERAS": {"smoke.*": 9},
    "environment.KERAS_BACKEND": {"smoke.*": 9},
    "environment.PYTHON*": {"versions.*": 6},
    "environment.*": {"environment.*": 8, "smoke.*": 4},
}
"""Changed fact to the failing checks that it may explain, from 1 (unlikely) to 9 (almost certain). The maximum
counts."""


def drift(lock: Lock, now: Recorded, results: Iterable[Result], shown: str) -> Drift:
    """Compare a run with a lock.

    Args:
        lock: what was recorded.
        now: what the run found, with identifiers if the lock has them.
        results: of the checks.
        shown: the file of the lock, for the report.
    """
    failed = [result for result in results if result.status is Status.FAIL]
    failed_then = {check for check, status in lock.facts.get("checks", {}).items() if status == Status.FAIL.value}
    weighed = [_weighed(change, failed, failed_then) for change in _changes(lock, now)]
    weighed.sort(key=lambda item: (-item[0], item[1].fact))
    unread = [f"{name}: {now.unread[name]}" for name in sorted(lock.facts) if name in now.unread]
    return Drift(
        lock=shown, recorded=lock.recorded, changes=tuple(change for _, change in weighed), unread=tuple(unread)
    )


def _changes(lock: Lock, now: Recorded) -> Iterable[DriftChange]:
    for section in sorted({*lock.facts, *now.facts} - _NOT_COMPARED):
        old, new = lock.facts.get(section, {}), now.facts.get(section, {})
        for name in sorted({*old, *new}):
            # Half of a section may be unreadable (driver: NVML or the kernel).
            is_unread = name not in new and section in now.unread
            was_unread = name not in old and section in _OF_FIXED_NAMES and section in lock.facts
            # kdoctor may have been installed into the job's environment since.
            was_unread = was_unread or (section == "packages" and name not in old and name in now.own)
            if old.get(name) != new.get(name) and not is_unread and not was_unread:
                yield DriftChange(fact=f"{section}.{name}", old=old.get(name), new=new.get(name))
    yield from _scenario_changes(lock, now)


def _scenario_changes(lock: Lock, now: Recorded) -> Iterable[DriftChange]:
    """Changes in scenarios that ran both times."""
    before, after = lock.facts.get("scenarios", {}), now.facts.get("scenarios", {})
    for name in sorted({*before, *after}):
        scenario = name.partition("/")[0]
        known_before = any(other.startswith(f"{scenario}/") for other in before)
        if before.get(name) != after.get(name) and scenario in now.scenarios and known_before:
            yield DriftChange(fact=f"scenarios.{name}", old=before.get(name), new=after.get(name))
    for name, measure in sorted(lock.measured.items()):
        measured = now.measured.get(name)
        if measured and not measure.holds(measured.value):
            change = DriftChange(fact=f"measured.{name}", old=f"{measure.value:g}", new=f"{measured.value:g}")
            if not name.endswith(STEP_SECONDS):
                yield change
            elif measured.value > measure.value and _is_one_training(name, before, after):
                times = f"{measured.value / measure.value:.1f} times slower"
                yield replace(change, new=f"{change.new} ({times}, limit {measure.high / measure.value:.3g})")


def _is_one_training(measure: str, before: Mapping[str, str], after: Mapping[str, str]) -> bool:
    """Whether a step is of the same training as before: same scenario version, devices and replicas."""
    training = measure.removesuffix(STEP_SECONDS)
    scenario = training.partition("/")[0]
    names = (f"{scenario}/version", f"{scenario}/devices", f"{training}/replicas")
    return all(before.get(name) == after.get(name) for name in names)


def _weighed(change: DriftChange, failed: Iterable[Result], failed_then: Collection[str]) -> tuple[int, DriftChange]:
    """The change with the failures that it may explain, and how likely it explains one of them.

    No change explains a check that already failed in the recorded run (a warning, or accepted), unless its finding
    names the thing that changed.
    """
    weights = {
        result.id: weight
        for result in failed
        if (weight := _weight(change, result)) > (_NAMED if result.id in failed_then else 0)
    }
    explained = sorted(weights, key=lambda check: (-weights[check], check))
    best = max(weights.values(), default=0)
    return best, DriftChange(fact=change.fact, old=change.old, new=change.new, explains=tuple(explained))


def _weight(change: DriftChange, result: Result) -> int:
    fitting = [
        weight
        for fact, checks in EXPLAINS.items()
        if fnmatchcase(change.fact, fact)
        for check, weight in checks.items()
        if fnmatchcase(result.id, check)
    ]
    if not fitting:
        return 0
    section, _, name = change.fact.partition(".")
    if section not in _NAMEABLE:
        return max(fitting)
    text = " ".join(
        f"{item.finding.subject} {item.finding.observed} {item.finding.expected}" for item in result.findings
    )
    return max(fitting) + (_NAMED if name in re.findall(r"[\w-]+", text) else 0)
