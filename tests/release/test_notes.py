"""The text of a release is a section of the changelog."""

from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.release import load

ROOT = Path(__file__).parents[2]
CHANGELOG = """# Changelog

## [Unreleased]

## [1.1.0] - 2026-12-01

### Added

- Two.

## [1.0.0] - 2026-11-01

- One.

## [0.9.0]

- Without a date.

## [0.8.0] - 2026-01-01
"""


notes = load("notes")


def test_section_is_the_text() -> None:
    assert notes.section(CHANGELOG, "1.1.0") == "### Added\n\n- Two.\n"
    assert notes.section(CHANGELOG, "1.0.0") == "- One.\n"


@cases(("2.0.0", "no section"), ("0.9.0", "no date"), ("0.8.0", "is empty"), ("1.1", "no section"))
def test_release_without_text_fails(version: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        notes.section(CHANGELOG, version)


def test_tag_must_be_the_version_of_the_code() -> None:
    with pytest.raises(SystemExit, match="expected v"):
        notes.main("v99.0.0")


def test_changelog_of_this_repository_is_readable() -> None:
    assert notes.section(
        (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("[Unreleased]", "[9.9.9] - 2026-01-01"), "9.9.9"
    )
