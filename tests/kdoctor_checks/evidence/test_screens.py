"""The words and the limits of each check, as reviewed files that ``make snapshots`` rewrites.

A file has what the check says on machines of several kinds and after a change of one fact, and the values at which its
status changes.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.evidence.comparing import CHECKS
from helpers.evidence.screens import screen
from kdoctor.check import Check

SCREENS = Path(__file__).parent / "screens"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_check_says_what_was_reviewed(check: Check, request: pytest.FixtureRequest) -> None:
    file = SCREENS / f"{check.id}.txt"
    text = screen(check)
    if request.config.getoption("update_snapshots"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


def test_every_file_is_of_a_check() -> None:
    assert {file.stem for file in SCREENS.iterdir()} == {check.id for check in CHECKS}
