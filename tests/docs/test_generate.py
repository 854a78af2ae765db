"""The generated pages match the code."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from kdoctor.engine.catalog import load_catalog

DOCS = Path(__file__).parents[2] / "docs"
_SPEC = importlib.util.spec_from_file_location("generate", DOCS / "generate.py")
assert _SPEC
assert _SPEC.loader
generate = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(generate)


@pytest.mark.parametrize("name", generate.PAGES)
def test_generated_page_is_up_to_date(name: str) -> None:
    assert (DOCS / name).read_text(encoding="utf-8") == generate.PAGES[name](load_catalog()), "run: make docs"
