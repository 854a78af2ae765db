from __future__ import annotations

from kdoctor.cli.listing import explain
from kdoctor.engine.catalog import load_catalog


def test_explain_names_the_known_failures_that_a_check_catches() -> None:
    words = explain(load_catalog(), "versions.libraries-searched")
    assert "Known failures that it catches\n  tf2161_runpath\n" in words
    assert "Known failures" not in explain(load_catalog(), "versions.other-conflicts")
