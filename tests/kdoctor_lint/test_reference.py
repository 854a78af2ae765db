from __future__ import annotations

from pathlib import Path

from kdoctor_lint.reference import page
from kdoctor_lint.registry import RULES

PAGE = Path(__file__).parents[2] / "docs" / "lint.md"


def test_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make docs"


def test_every_rule_has_a_section() -> None:
    assert [line[3:] for line in page().splitlines() if line.startswith("## lint.")] == list(RULES)
