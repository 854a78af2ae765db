"""Ids stand in checklists, so one that was given stays for ever. ``ids.txt`` is added to, and never shortened."""

from __future__ import annotations

from pathlib import Path

from kdoctor_checks import checks


def test_every_id_that_was_ever_given_is_there() -> None:
    given = Path(__file__).with_name("ids.txt").read_text(encoding="utf-8").split()
    assert sorted(set(given) - {check.id for check in checks()}) == []
