from __future__ import annotations

import re
from itertools import combinations
from typing import Any

import pytest

from helpers.facts import NOT_SUPPORTED, gpus, lost_gpu, pair
from helpers.facts import gpu as a_gpu
from kdoctor.facts import Gpus, NvLink, TopologyLevel
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.pairs import pairs


def two(level: TopologyLevel | None, **changes: Any) -> Gpus:
    return gpus(2, pairs=(pair(level=level, **{"nvlinks": 0, **changes}),))


@pytest.mark.parametrize("level", ["internal", "PIX", "PXB", "PHB", "NODE"])
def test_near_pairs_pass(level: TopologyLevel) -> None:
    result = compute_check(pairs, two(level))
    assert result.status is Status.PASS
    assert [(item.subject, item.observed) for item in result.evidence] == [("GPU 0 - GPU 1", level)]


def test_pair_across_sockets_warns() -> None:
    result = compute_check(pairs, two("SYS"))
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert result.findings[0].finding.subject == "GPU 0 - GPU 1"
    assert compute_check(pairs, two("SYS"), farthest="SYS").status is Status.PASS
    assert compute_check(pairs, two("PHB"), farthest="PXB").status is Status.FAIL


def test_nvlink_pair_passes_at_any_distance() -> None:
    result = compute_check(pairs, two("SYS", nvlinks=18))
    assert result.status is Status.PASS
    assert result.evidence[0].observed == "NV18"
    assert compute_check(pairs, two(None, nvlinks=4)).status is Status.PASS


def test_gpus_without_nvlink_are_judged_by_their_distance() -> None:
    assert compute_check(pairs, two("SYS", nvlinks=None, errors={"nvlinks": NOT_SUPPORTED})).status is Status.FAIL


def test_unread_nvlinks_are_unknown_only_for_distant_pairs() -> None:
    unread: dict[str, Any] = {"nvlinks": None, "errors": {"nvlinks": "NVML_ERROR_UNKNOWN"}}
    result = compute_check(pairs, two("SYS", **unread))
    assert re.fullmatch(r"GPU 0 - GPU 1: SYS.*\(NVML_ERROR_UNKNOWN\)", result.reason or "")
    assert compute_check(pairs, two("PIX", **unread)).status is Status.PASS


def test_every_pair_is_judged() -> None:
    result = compute_check(pairs, gpus(4))
    assert result.status is Status.PASS
    assert len(result.evidence) == 6


def test_value_names_the_paths_between_all_pairs() -> None:
    same = compute_check(pairs, gpus(3))
    assert {item.brief for item in same.evidence} == {"NVLink (NV18) between every pair"}
    mixed = (
        pair(0, 1, level="PIX", nvlinks=0),
        pair(0, 2, level="NODE", nvlinks=0),
        pair(1, 2, level="PIX", nvlinks=0),
    )
    assert {item.brief for item in compute_check(pairs, gpus(3, pairs=mixed)).evidence} == {
        "PIX or NODE between every pair"
    }


def test_fix_names_the_largest_set_of_near_gpus() -> None:
    near = {(0, 1), (2, 3), (2, 4), (3, 4)}
    found = tuple(
        pair(*indices, level="PIX" if indices in near else "SYS", nvlinks=0) for indices in combinations(range(5), 2)
    )
    remedies = {item.finding.remedy.commands for item in compute_check(pairs, gpus(5, pairs=found)).findings}
    assert remedies == {("export CUDA_DEVICE_ORDER=PCI_BUS_ID", "export CUDA_VISIBLE_DEVICES=2,3,4")}
    two = compute_check(pairs, gpus(2, pairs=(pair(0, 1, level="SYS", nvlinks=0),)))
    assert two.findings[0].finding.remedy.commands == ()


def test_pair_with_inactive_links_is_explained_by_topology_nvlink() -> None:
    down = a_gpu(0, nvlinks=(NvLink(index=0, active=False),))
    far = (pair(0, 1, level="SYS", nvlinks=0),)
    (found,) = compute_check(pairs, gpus(2, down, a_gpu(1), pairs=far)).findings
    assert found.finding.explained_by == ("topology.nvlink", "topology.nvlink-direct")


def test_lost_gpu_is_unknown_and_others_judged() -> None:
    result = compute_check(pairs, gpus(4, a_gpu(0), lost_gpu(1), a_gpu(2), a_gpu(3)))
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.evidence] == ["GPU 0 - GPU 2", "GPU 0 - GPU 3", "GPU 2 - GPU 3"]
    assert compute_check(pairs, gpus(2, a_gpu(0), lost_gpu(1))).status is Status.SKIP


def test_unread_or_missing_levels_are_unknown() -> None:
    result = compute_check(pairs, two(None, error="NotSupported"))
    assert result.status is Status.UNKNOWN
    assert re.fullmatch(r"GPU 0 - GPU 1: .*\(NotSupported\)", result.reason or "")
    assert compute_check(pairs, gpus(3, pairs=gpus(2).pairs)).status is Status.UNKNOWN


def test_single_gpu_is_skipped() -> None:
    assert compute_check(pairs, gpus(1)).status is Status.SKIP


def test_unread_list_of_gpus_is_unknown() -> None:
    assert compute_check(pairs, gpus(1, count=4)).status is Status.UNKNOWN
    assert compute_check(pairs, gpus(1, count=None)).status is Status.UNKNOWN
    assert compute_check(pairs, gpus(0)).status is Status.SKIP


def test_single_gpu_of_an_unknown_number_is_unknown() -> None:
    """Recorded: the message of nvidia-smi about one lost GPU."""
    result = compute_check(pairs, gpus(1, count=None, errors={"count": "not in nvidia-smi's failure"}))
    assert result.status is Status.UNKNOWN
    assert "not in nvidia-smi's failure" in (result.reason or "")


def test_no_gpu_has_no_pair() -> None:
    assert compute_check(pairs, gpus(0)).status is Status.SKIP
