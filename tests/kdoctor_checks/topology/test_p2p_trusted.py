from __future__ import annotations

import pytest

from helpers.facts import geforce, geforces, gpus, pair
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.p2p_trusted import p2p_trusted


@pytest.mark.parametrize("model", ["4090", "4080 SUPER", "5090"])
def test_patched_driver_with_peer_access_warns(model: str) -> None:
    patched = gpus(2, geforce(0, model), geforce(1, model), pairs=(pair(nvlinks=0),))
    result = compute_check(p2p_trusted, patched)
    assert (result.status, result.severity) == (Status.FAIL, Severity.WARNING)
    assert result.findings[0].finding.remedy.commands[0] == "export NCCL_P2P_DISABLE=1"


def test_unpatched_driver_passes() -> None:
    result = compute_check(p2p_trusted, geforces(2))
    assert result.status is Status.PASS
    assert result.evidence[0].observed == "P2P GNS"


def test_older_cards_are_skipped() -> None:
    bridged = gpus(2, geforce(0, "3090"), geforce(1, "3090"), pairs=(pair(nvlinks=4),))
    assert compute_check(p2p_trusted, bridged).status is Status.SKIP


def test_unread_status_is_unknown() -> None:
    unread = pair(p2p_read=None, p2p_write=None, errors={"p2p_read": "Unknown"})
    assert compute_check(p2p_trusted, geforces(2, pairs=(unread,))).status is Status.UNKNOWN
