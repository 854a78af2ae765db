"""Recorded machines in the folder KDOCTOR_CORPUS. Its INDEX.md lists the source of each file."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from helpers.checks import ALL
from helpers.judging import TODAY
from kdoctor.engine.judge import PlannedCheck, Rules, judge
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup
from kdoctor.matrix.load import shipped_matrix
from kdoctor.model import Assumptions, GpuAssumption, Severity, Status
from kdoctor_recordings.importer import import_files

REASON = "KDOCTOR_CORPUS is not set"


def recorded(name: str) -> Path:
    """The path of a recorded file. Skips the test without a corpus."""
    folder = os.environ.get("KDOCTOR_CORPUS")
    if not folder:
        pytest.skip(REASON)
    return Path(folder) / name


def corpus_snapshot(*names: str) -> Mapping[type[FactGroup], FactGroup]:
    """The facts that ``kdoctor snapshot --import`` reads from the recorded files of one machine."""
    return import_files([recorded(name) for name in names]).facts


PLAN = [
    PlannedCheck(check=check, severity=check.severity)
    for check in ALL.values()
    if check.family in {"driver", "gpu", "topology", "host"}
]


def judged_recording(*names: str) -> dict[str, Result]:
    """The results for a machine with at least one GPU, by check."""
    table = dict(corpus_snapshot(*names))
    rules = Rules(today=TODAY, matrix=shipped_matrix(), assumptions=Assumptions(gpus=GpuAssumption(at_least=1)))
    return {result.id: result for result in judge(PLAN, table, rules)}


def failing(found: Mapping[str, Result], *severities: Severity) -> dict[str, set[str]]:
    """The subjects of the findings by check; errors and warnings, unless other severities are given."""
    wanted = severities or (Severity.ERROR, Severity.WARNING)
    return {
        check_id: {item.finding.subject for item in result.findings}
        for check_id, result in found.items()
        if result.status is Status.FAIL and result.severity in wanted
    }
