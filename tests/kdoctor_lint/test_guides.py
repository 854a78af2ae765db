"""Scripts modelled on public guides, with the findings of a careful reviewer.

Each line with findings ends with ``# expect: <rule> <rule>``.
"""

from pathlib import Path

import pytest

from kdoctor_lint.engine import lint

GUIDES = sorted((Path(__file__).parent / "guides").glob("*.py.txt"))


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.name.partition(".")[0])
def test_guide_has_expected_findings(guide: Path) -> None:
    expected = {
        (number, f"lint.{rule}")
        for number, line in enumerate(guide.read_text(encoding="utf-8").split("\n"), 1)
        for rule in line.partition("# expect:")[2].split()
    }
    assert sorted((item.spot.line, item.rule.id) for item in lint([str(guide)]).findings) == sorted(expected)


def test_at_least_twelve_guides() -> None:
    assert len(GUIDES) >= 12
