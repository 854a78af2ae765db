"""Banned words, which keep the language of kdoctor plain technical English."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

BANNED = {
    r"not so:": "say what was observed",
    r"\b(un)?told\b|\btells? (of|apart|when|how|why|what|so)\b": "report, unknown",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\banew\b": "again",
    r"\brubbish\b": "invalid data",
    r"\b(rightly|wrongly)\b": "correctly, incorrectly",
    r"(?!^nobody$)\bnobody\b|\bsomebody\b": "name who or what (nobody is also a Unix user)",
    r"\bin words\b": "drop it",
    r"\bthe way back\b|\bways? back\b": "rollback",
    r"\bby hand, and\b": "manually",
    r"(?<!there )\b(is|are|was|were) no (?!longer\b|more than\b|less than\b|GPUs?\b|way\b|(?:[a-z]+ )?need\b)": "is not a",
    r"\b(it|this|that|which|what|one|text|file|line|lock|page|key|name) stands\b|\bstands? (there|here|in|on|for|beside|before)\b": "is",
    r"\bbeside\b": "next to, with",
    r"\bof (its|your|their|our|one\'s|his|her) own\b": "your, its",
    r"\bis otherwise\b|\bsays? otherwise\b|\bsee otherwise\b": "different",
    r"\bapart from (one|each)\b|\bof their way apart\b": "differ",
    r"\bto and fro\b": "flaky",
    r"\bso many\b": "the number of",
    r"\b(red|green) (run|state|check|lock)s?\b|\b(first|is|are|was|all|turns?) (red|green)\b|\blast.green\b": "failed, passing",
    r"\bcome by\b|\bcame by\b": "obtained",
    r"\bin vain\b": "never finished",
    r"\bdecided in advance\b": "failure policy",
    r"\bnothing but\b": "only",
    r"\bwhoever\b|\bwhosever\b": "who",
    r"\bhinders?\b|\bgravest?\b|\bgraver\b": "prevents, most severe",
    r"\bone after another\b|\bone by one\b": "in sequence",
    r"\bshall\b|\bthus\b|\bhence\b": "plain words",
}
"""Regular expression (case-insensitive) to better words."""

SOURCES = sorted(
    path
    for folder in ("doctor", "checks", "checklists", "benchmarks", "docs")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".md", ".yaml", ".yml", ".j2", ".sh", ".service", ".timer"}
    and "__pycache__" not in path.parts
    and ".egg-info" not in str(path)
)
PAGES = [
    ROOT / name
    for name in (
        "README.md",
        "CONTRIBUTING.md",
        "Makefile",
        "action.yml",
        "pyproject.toml",
        ".pre-commit-hooks.yaml",
        ".github/update_comment.py",
        ".github/workflows/kdoctor.yml",
    )
]
TESTS = sorted((ROOT / "tests").rglob("*.py"))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def strings(source: str) -> Iterator[tuple[int, str]]:
    """Every string in Python code with its line, including docstrings."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def docstrings(source: str) -> Iterator[tuple[int, str]]:
    """The docstrings in Python code with their lines, including those of constants and fields."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.lineno, node.value.value


def comments(source: str) -> Iterator[tuple[int, str]]:
    """The comments in Python code with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """The texts that a person reads in a file. Other strings of tests may quote the output of other programs."""
    content = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return iter(enumerate(content.splitlines(), 1))
    return chain(docstrings(content) if path in TESTS else strings(content), comments(content))


def banned(text: str) -> Iterator[str]:
    """Each banned word in a text, with the words around it and a better word."""
    line = " ".join(text.split())
    for pattern, instead in BANNED.items():
        if match := re.search(pattern, line, re.IGNORECASE):
            around = line[max(0, match.start() - 40) : match.end() + 40]
            yield f"{match.group()!r} in {around!r}; use: {instead}"


@pytest.mark.parametrize("path", [*SOURCES, *PAGES, *TESTS], ids=name)
def test_no_banned_words(path: Path) -> None:
    assert [f"{name(path)}:{line}: {found}" for line, text in texts(path) for found in banned(text)] == []


def test_banned_words_are_found_across_lines() -> None:
    assert [found.partition(" ")[0] for found in banned("It is\n    Rightly done.")] == ["'Rightly'"]
    assert list(banned("It is done correctly.")) == []


def test_tests_are_read_without_their_other_strings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "test_one.py"
    path.write_text('"""Module."""\n\nTEXT = "foreign"\n"""Constant."""  # comment\n', encoding="utf-8")
    assert list(texts(path)) == [(1, "Module."), (3, "foreign"), (4, "Constant."), (4, "# comment")]
    monkeypatch.setitem(globals(), "TESTS", [path])
    assert list(texts(path)) == [(1, "Module."), (4, "Constant."), (4, "# comment")]


NAMES = re.compile(r"untold|_told|mended|anew|rubbish|otherwise|green|in_words|nobody|_stands|^test_(the|its?)_")
"""Not allowed in the names of functions, classes and modules."""


@pytest.mark.parametrize("path", [path for path in (*SOURCES, *TESTS) if path.suffix == ".py"], ids=name)
def test_names_have_no_banned_words(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    defined = [
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
    ]
    assert [name for name in [path.stem, *defined] if NAMES.search(name)] == []
