"""Scripts after public guides, in the project's own words: the findings that a careful reviewer would give.

Each line that something is to be said about ends with ``# expect: <rule> <rule>``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from kdoctor_lint.engine import lint

GUIDES = sorted((Path(__file__).parent / "guides").glob("*.py.txt"))


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name.partition(".")[0])
def test_a_guide_gets_what_a_reviewer_would_say(guide: Path) -> None:
    expected = {
        (number, f"lint.{rule}")
        for number, line in enumerate(guide.read_text(encoding="utf-8").split("\n"), 1)
        for rule in line.partition("# expect:")[2].split()
    }
    report = lint([str(guide)])
    assert {(item.spot.line, item.rule.id) for item in report.findings} == expected
    assert len(report.findings) == len(expected)


def test_there_are_enough_guides() -> None:
    assert len(GUIDES) >= 12
