from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import NOT_SUPPORTED, geforces, gpu, gpus, lost_gpu, pair
from kdoctor.facts import NvLink
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.p2p import p2p


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({}, Status.PASS),
        ({"p2p_read": "CNS", "p2p_write": "CNS"}, Status.FAIL),
        ({"p2p_write": "DR"}, Status.FAIL),
        ({"level": "SYS", "nvlinks": 0, "p2p_read": "CNS", "p2p_write": "CNS"}, Status.SKIP),  # topology.pairs
        ({"level": "SYS", "nvlinks": 0, "p2p_read": "DR", "p2p_write": "DR"}, Status.FAIL),
        ({"p2p_read": None, "errors": {"p2p_read": "Unknown"}}, Status.UNKNOWN),
        ({"p2p_read": None, "p2p_write": None, "errors": {"p2p_read": NOT_SUPPORTED}}, Status.UNKNOWN),
    ],
)
def test_missing_peer_access_warns(change: dict[str, Any], status: Status) -> None:
    result = compute_check(p2p, gpus(2, pairs=(pair(**change),)))
    assert (result.status, result.severity) == (status, Severity.WARNING)


def test_finding_names_pair_and_explains_status() -> None:
    result = compute_check(p2p, gpus(2, pairs=(pair(p2p_read="TNS", p2p_write="OK"),)))
    finding = result.findings[0].finding
    assert finding.subject == "GPU 0 - GPU 1"
    assert "read TNS (topology not supported), write OK" in finding.observed


def test_geforce_cards_are_skipped() -> None:
    assert compute_check(p2p, geforces(2)).status is Status.SKIP


def test_cards_whose_names_were_not_read_may_be_geforce() -> None:
    """Recorded: only the matrix of ``topo -p2p`` of two RTX 5090, with GNS."""
    unnamed = gpus(2, gpu(0, name=None), gpu(1, name=None), pairs=(pair(p2p_read="GNS", p2p_write="GNS"),))
    assert compute_check(p2p, unnamed).status is Status.UNKNOWN


def test_lost_gpu_is_unknown_and_single_gpu_skipped() -> None:
    assert compute_check(p2p, gpus(3, gpu(0), gpu(1), lost_gpu(2))).status is Status.UNKNOWN
    assert compute_check(p2p, gpus(1)).status is Status.SKIP


def test_unlisted_pair_is_unknown() -> None:
    assert compute_check(p2p, gpus(2, pairs=())).status is Status.UNKNOWN


@pytest.mark.parametrize(
    ("change", "explained_by"),
    [
        ({}, ()),
        ({"mig_mode": True}, ("gpu.mig-mode",)),
        ({"fabric_state": "not-started"}, ("topology.fabric",)),
        ({"nvlinks": (NvLink(index=0, active=False),)}, ("topology.nvlink", "topology.nvlink-direct")),
    ],
)
def test_missing_peer_access_is_explained_by_the_state_of_a_gpu(
    change: dict[str, Any], explained_by: tuple[str, ...]
) -> None:
    refused = pair(p2p_read="GNS", p2p_write="GNS")
    (found,) = compute_check(p2p, gpus(2, gpu(0), gpu(1, **change), pairs=(refused,))).findings
    assert found.finding.explained_by == explained_by
    assert found.finding.headline == "no peer access (GNS)"


def test_confidential_computing_explains_missing_peer_access() -> None:
    refused = pair(p2p_read="NS", p2p_write="NS")
    found = gpus(2, pairs=(refused,), conf_compute=True, conf_compute_multi_gpu="none")
    assert compute_check(p2p, found).findings[0].finding.explained_by == ("driver.confidential-computing",)
