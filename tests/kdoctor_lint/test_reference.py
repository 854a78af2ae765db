from __future__ import annotations

from pathlib import Path

from kdoctor_lint.reference import page, rule_pages
from kdoctor_lint.registry import RULES

DOCS = Path(__file__).parents[2] / "docs"


def test_pages_are_up_to_date() -> None:
    assert (DOCS / "lint.md").read_text(encoding="utf-8") == page(), "run: make docs"
    written = {path.name: path.read_text(encoding="utf-8") for path in (DOCS / "lint").iterdir()}
    assert written == rule_pages(), "run: make docs"


def test_every_rule_has_a_page_that_is_linked() -> None:
    assert [text.split("\n")[0] for text in rule_pages().values()] == [f"# {name}" for name in RULES]
    assert [name for name in rule_pages() if f"(lint/{name})" not in page()] == []
