"""Writes the pages that are generated from the code: ``make docs``. A test fails if one is out of date."""

from __future__ import annotations

from pathlib import Path

from docs.generator.failures import failure_pages
from docs.generator.pages import PAGES

from kdoctor.plugins.catalog import load_catalog

DOCS = Path(__file__).parents[1]


def main() -> None:
    """Write every page."""
    catalog = load_catalog()
    failures = failure_pages(catalog)
    for stale in set((DOCS / "failure-modes").glob("*.md")) - {DOCS / name for name in failures}:
        stale.unlink()
    for name, text in {**{name: write(catalog) for name, write in PAGES.items()}, **failures}.items():
        (DOCS / name).parent.mkdir(exist_ok=True)
        (DOCS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
