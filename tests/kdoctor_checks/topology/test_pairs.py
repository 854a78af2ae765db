from __future__ import annotations

import pytest

from helpers.facts import gpus
from helpers.judging import compute_check
from kdoctor.facts import GpuPair, Gpus, TopologyLevel
from kdoctor.model import Severity, Status
from kdoctor_checks.topology.pairs import pairs


def two(level: TopologyLevel | None, error: str | None = None) -> Gpus:
    return gpus(2, pairs=(GpuPair(first=0, second=1, level=level, error=error),))


@pytest.mark.parametrize("level", ["internal", "PIX", "PXB", "PHB", "NODE"])
def test_near_pairs_pass(level: TopologyLevel) -> None:
    result = compute_check(pairs, two(level))
    assert result.status is Status.PASS
    assert [(item.subject, item.observed) for item in result.evidence] == [("GPU 0 - GPU 1", level)]


def test_a_pair_across_the_sockets_is_a_named_warning() -> None:
    result = compute_check(pairs, two("SYS"))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert result.findings[0].finding.subject == "GPU 0 - GPU 1"
    assert compute_check(pairs, two("SYS"), farthest="SYS").status is Status.PASS
    assert compute_check(pairs, two("PHB"), farthest="PXB").status is Status.FAIL


def test_every_pair_is_judged() -> None:
    result = compute_check(pairs, gpus(4))
    assert result.status is Status.PASS
    assert len(result.evidence) == 6


def test_unread_or_missing_levels_are_unknown() -> None:
    result = compute_check(pairs, two(None, "NotSupported"))
    assert (result.status, result.reason) == (
        Status.UNKNOWN,
        "GPU 0 - GPU 1: its level was not read (NotSupported)",
    )
    assert compute_check(pairs, gpus(3, pairs=gpus(2).pairs)).status is Status.UNKNOWN


def test_one_gpu_has_no_pair() -> None:
    assert compute_check(pairs, gpus(1)).status is Status.SKIP


def test_a_list_that_was_not_read_is_no_lack_of_pairs() -> None:
    assert compute_check(pairs, gpus(1, count=4)).status is Status.UNKNOWN
    assert compute_check(pairs, gpus(1, count=None)).status is Status.UNKNOWN
    assert compute_check(pairs, gpus(0)).status is Status.UNKNOWN
