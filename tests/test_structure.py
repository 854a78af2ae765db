"""Limits that keep the source readable. Who may import whom is in the import contracts of pyproject.toml."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted(
    path for root in ("doctor", "checks", "checklists", "benchmarks") for path in (ROOT / root).rglob("*.py")
)
EXCEPTIONS = {"cli", "facts", "kdoctor", "kdoctor_checks", "testing"}
PACKAGES = [path for path in MODULES if path.name == "__init__.py" and path.parent.name not in EXCEPTIONS]
MOST_LINES_OF_A_MODULE = 450
MOST_LINES_OF_A_FUNCTION = 90
MOST_LOOSE_MODULES = 8
WORDS_OF_A_MESSAGE = 13


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_modules_and_functions_are_short(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES_OF_A_MODULE
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    lengths = {node.name: (node.end_lineno or node.lineno) - node.lineno + 1 for node in functions}
    assert {name: lines for name, lines in lengths.items() if lines > MOST_LINES_OF_A_FUNCTION} == {}


def test_modules_live_in_packages() -> None:
    loose = [path.stem for path in (ROOT / "doctor" / "kdoctor").glob("*.py") if not path.stem.startswith("__")]
    assert len(loose) <= MOST_LOOSE_MODULES, loose


@pytest.mark.parametrize("path", PACKAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_packages_export_nothing(path: Path) -> None:
    """A name has one home. The exceptions are public packages and those with code."""
    imports = [node for node in ast.parse(path.read_text(encoding="utf-8")).body if isinstance(node, ast.ImportFrom)]
    assert [node.module for node in imports if node.module != "__future__"] == []


def test_messages_are_written_once() -> None:
    """A line of this many words that two modules use has one home. docs/architecture.md, "Messages".

    The table of commands repeats the first line of their help, which another test compares.
    """
    homes: dict[str, set[str]] = {}
    for path in (path for path in MODULES if path.parts[-2:] != ("cli", "__init__.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documentation = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in documentation)
        for text in {str(node.value) for node in texts}:
            if len(text.split()) >= WORDS_OF_A_MESSAGE and "\n" not in text:
                homes.setdefault(text, set()).add(str(path.relative_to(ROOT)))
    assert {text: sorted(found) for text, found in homes.items() if len(found) > 1} == {}
