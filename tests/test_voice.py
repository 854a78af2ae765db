"""The language of kdoctor: plain technical English, without the words that nobody in the field uses."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
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
"""Regular expression, case-insensitive, to what to say instead."""

SOURCES = sorted(
    path
    for folder in ("doctor", "checks", "checklists", "benchmarks", "docs")
    for path in (ROOT / folder).rglob("*")
    if path.suffix in {".py", ".md", ".yaml", ".j2"}
    and "__pycache__" not in path.parts
    and ".egg-info" not in str(path)
)
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "Makefile", "action.yml", "pyproject.toml")]
QUOTED = ("CHANGELOG.md",)
"""Old entries keep their words."""


def prose(path: Path) -> Iterator[tuple[int, str]]:
    """The line and the text of everything in a file that a person reads: strings, docstrings, comments, pages."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from enumerate(text.splitlines(), 1)
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, " ".join(node.value.split())
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


@pytest.mark.parametrize("path", [*SOURCES, *PAGES], ids=lambda path: str(path.relative_to(ROOT)))
def test_no_banned_words(path: Path) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {match.group()!r} ({instead}): {text[max(0, match.start() - 40) : match.end() + 40]}"
        for number, text in prose(path)
        for pattern, instead in BANNED.items()
        for match in [re.search(pattern, text, re.IGNORECASE)]
        if match
    ]
    assert found == []


NAMES = re.compile(r"untold|_told|mended|anew|rubbish|otherwise|green|in_words")
"""Not in names of functions, classes, modules or tests."""


@pytest.mark.parametrize(
    "path",
    sorted(path for folder in ("doctor", "checks", "tests") for path in (ROOT / folder).rglob("*.py")),
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_names_follow_the_same_rules(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    defined = [
        node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef)
    ]
    assert [name for name in [path.stem, *defined] if NAMES.search(name)] == []
