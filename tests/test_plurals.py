"""Counts in messages have nouns of the right number: ``1 GPU answers``, not ``1 GPUs answer``."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from kdoctor.text.lists import counted

ROOT = Path(__file__).parent.parent
SOURCES = sorted(file for folder in ("doctor", "checks") for file in (ROOT / folder).rglob("*.py"))

COUNTS = frozenset(
    {"count", "epochs", "gpus_seen", "number", "replicas", "requested", "samples", "steps", "total", "trainable"}
    | {"updates", "variables", "workers"}
)
"""Names of whole numbers of things, as the code uses them."""
PLURAL = re.compile(r"^ (?:[a-z-]+ )?(?!bytes|times|its)[A-Za-z]{2,}(?<![isu])s\b(?! is\b)")
"""A word in the plural, with at most one word before it. Units of size and factors are never singular here."""
VERBS = re.compile(
    r"^ (?:[a-z-]+ )?(?:has|was|does|lists|needs|gives|makes|requires|responds|takes|matches|runs|trains)\b"
)


def is_count(value: ast.expr) -> bool:
    """Whether an expression is known to be a number of things."""
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id in {"len", "sum"}
    return (isinstance(value, ast.Name) and value.id in COUNTS) or (
        isinstance(value, ast.Attribute) and value.attr in COUNTS
    )


def uncounted(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of each count that is followed by a plural, however large it is."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.JoinedStr):
            continue
        for value, text in pairwise(node.values):
            if not isinstance(value, ast.FormattedValue) or not isinstance(text, ast.Constant):
                continue
            after = str(text.value)
            if is_count(value.value) and PLURAL.match(after) and not VERBS.match(after):
                yield node.lineno, f"{{{ast.unparse(value.value)}}}{after}"


@pytest.mark.parametrize(
    "code",
    [
        "f'{len(gpus)} GPUs answer'",
        "f'{case.replicas} replicas train'",
        "f'none of {len(names)} shared libraries'",
        "f'{sum(found):d} errors'",
    ],
)
def test_plural_after_count_is_found(code: str) -> None:
    assert len(list(uncounted(code))) == 1


@pytest.mark.parametrize(
    "code",
    [
        "f'{counted(len(gpus), \"GPU\")} answer'",
        "f'{len(head)} bytes'",
        "f'{len(ids)} is less'",
        "f'run {number} has'",
        "f'{name} checks'",
        "f'{len(near)} of 8'",
    ],
)
def test_other_text_is_not_found(code: str) -> None:
    assert not list(uncounted(code))


def test_counts_use_counted() -> None:
    found = [
        f"{file.relative_to(ROOT)}:{line}: {text}"
        for file in SOURCES
        for line, text in uncounted(file.read_text(encoding="utf-8"))
    ]
    assert not found, "use kdoctor.text.lists.counted"


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0 files"), (1, "1 file"), (2, "2 files"), (None, "an unknown number of files")]
)
def test_counted(number: int | None, text: str) -> None:
    assert counted(number, "file") == text


def test_irregular_plural() -> None:
    assert counted(1, "library", "libraries") == "1 library"
    assert counted(2, "library", "libraries") == "2 libraries"
