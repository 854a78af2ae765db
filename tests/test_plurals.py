"""Counts in messages have nouns of the right number: ``1 GPU answers``, not ``1 GPUs answer``."""

from helpers.cases import cases
from kdoctor.text.lists import counted


@cases((0, "0 files"), (1, "1 file"), (2, "2 files"), (None, "an unknown number of files"))
def test_counted(number: int | None, text: str) -> None:
    assert counted(number, "file") == text


def test_irregular_plural() -> None:
    assert counted(1, "library", "libraries") == "1 library"
    assert counted(2, "library", "libraries") == "2 libraries"
