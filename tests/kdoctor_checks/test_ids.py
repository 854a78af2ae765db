"""Checklists use the ids of checks, so ids are permanent. Lines are added to ``ids.txt``, but never removed."""

from pathlib import Path

from helpers.checks import ALL, of_installed


def test_no_id_was_removed() -> None:
    given = Path(__file__).with_name("ids.txt").read_text(encoding="utf-8").split()
    assert sorted(of_installed(given) - ALL.keys()) == []
