from __future__ import annotations

from helpers.facts import geforces, gpus, pair
from kdoctor.model import Severity, Status
from kdoctor.testing import compute_check
from kdoctor_checks.topology.p2p_geforce import p2p_geforce


def test_gns_is_a_note() -> None:
    result = compute_check(p2p_geforce, geforces(2))
    assert (result.status, result.severity) == (Status.FAIL, Severity.INFO)
    assert "GNS (GPU not supported)" in result.findings[0].finding.observed


def test_peer_access_passes_and_unread_status_is_unknown() -> None:
    assert compute_check(p2p_geforce, geforces(2, pairs=(pair(),))).status is Status.PASS
    unread = pair(p2p_read=None, errors={"p2p_read": "Unknown"})
    assert compute_check(p2p_geforce, geforces(2, pairs=(unread,))).status is Status.UNKNOWN


def test_other_gpus_are_skipped() -> None:
    assert compute_check(p2p_geforce, gpus(2)).status is Status.SKIP
