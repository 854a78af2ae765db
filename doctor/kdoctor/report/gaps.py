"""Groups the reasons why checks could not be judged, so that a report names each kind once."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from kdoctor.engine.report import Result
from kdoctor.facts import group_not_collected
from kdoctor.records import record
from kdoctor.report.phrases import describe_reason
from kdoctor.text.subjects import name_subjects

MOST_NAMED = 3
"""More checks, subjects or reasons are counted."""
_PYTHON = "Python environment"
_GROUPS = {
    "target": _PYTHON,
    "packages": _PYTHON,
    "tensorflow": _PYTHON,
    "keras": _PYTHON,
    "libraries": _PYTHON,
    "environment": _PYTHON,
    "gpus": "GPUs",
    "pci": "PCI devices",
    "host": "host",
    "network": "network",
    "job_hosts": "hosts of the job",
    "kernel": "kernel settings",
    "kernel_driver": "kernel module",
    "kernel_log": "kernel log",
}
"""Each group of facts in a reader's words."""
_NOT_IN = re.compile(r"\(not in ([^()]+)\)")
"""The reason for values that imported output does not contain."""


@record
class Gaps:
    """Why checks could not be judged, the most frequent reason first."""

    not_recorded: tuple[str, ...]
    """What the facts do not contain at all."""
    not_printed: dict[str, int]
    """Imported output, to the number of checks that need a value which it does not contain."""
    others: dict[str, tuple[str, ...]]
    """Every other reason, with its checks."""


def find_gaps(results: Iterable[Result]) -> Gaps:
    """The reasons of checks that could not be judged, by kind."""
    not_recorded: Counter[str] = Counter()
    not_printed: Counter[str] = Counter()
    others: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        reason = result.reason or ""
        if group := group_not_collected(reason):
            not_recorded[_GROUPS.get(group, group.replace("_", " "))] += 1
        elif output := _NOT_IN.search(reason):
            not_printed[output[1]] += 1
        else:
            reasons = tuple(dict.fromkeys(item.reason for item in result.unjudged)) or (reason,)
            others.setdefault(reasons, []).append(result)
    most_frequent = sorted(others.values(), key=lambda alike: -len(alike))
    return Gaps(
        not_recorded=tuple(name for name, _ in not_recorded.most_common()),
        not_printed=dict(not_printed.most_common()),
        others={_reason(alike): tuple(result.id for result in alike) for alike in most_frequent},
    )


def _reason(results: Sequence[Result]) -> str:
    """Why the checks are unknown, with the subjects of one reason together."""
    subjects: dict[str, dict[str, None]] = {}
    for result in results:
        for item in result.unjudged:
            names = subjects.setdefault(item.reason, {})
            if item.subject not in (result.id, result.scenario):  # the report names the check anyway
                names[item.subject] = None
    grouped = (
        f"{name_subjects(list(names))}: {reason}" if names and len(results) <= MOST_NAMED else reason
        for reason, names in subjects.items()
    )
    return "; ".join(grouped) or describe_reason(results[0])
