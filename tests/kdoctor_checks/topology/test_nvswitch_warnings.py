from __future__ import annotations

from helpers.facts import logged
from kdoctor.testing import compute_check
from kdoctor_checks.topology.nvswitch_warnings import nvswitch_warnings


def test_codes_are_listed_once_each_with_last_line() -> None:
    lines = [f"nvidia-nvswitch1: SXid (PCI:0000:c2:00.0): {code}, Non-fatal, Link 32" for code in (12028, 12028, 11012)]
    (finding,) = (item.finding for item in compute_check(nvswitch_warnings, logged(*lines)).findings)
    assert "SXid 11012, 12028;" in finding.observed
    assert finding.observed.endswith(repr(lines[-1]))
