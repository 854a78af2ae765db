"""A call of an unknown function neither creates nor destroys what is known of its arguments."""

import ast
import re
from collections.abc import Iterator

import pytest
from benchmarks.lint_labelled import JUDGED, cases

from helpers.tiers import every_second_day
from kdoctor.model import Severity
from kdoctor_lint.engine import lint_script
from kdoctor_lint.registry import RULES
from kdoctor_lint.script import parse_script

SCRIPTS = [
    *((rule.id, rule.bad) for rule in JUDGED if rule.severity is not Severity.INFO),
    *(
        (f"{case.rule.id}: {case.title}", case.code)
        for case in cases()
        if case.found and case.rule.severity is not Severity.INFO
    ),
]
BY_SCRIPT = pytest.mark.parametrize(
    ("rule", "code"),
    [pytest.param(*script, id=script[0], marks=every_second_day(place % 2)) for place, script in enumerate(SCRIPTS)],
)
MAY_BUILD = re.compile("KD503|KD106 .*of the optimizer")
"""Code outside the file may build an optimizer that it gets, so these errors are withheld."""


def errors(code: str) -> list[tuple[str, str]]:
    """The errors and warnings, each with its line of code."""
    found, _ = lint_script(parse_script("train.py", code.encode()), RULES)
    return [
        (item.rule.code, item.source)
        for item in found
        if item.rule.severity is not Severity.INFO and not MAY_BUILD.match(f"{item.rule.code} {item.message}")
    ]


def with_calls(code: str) -> Iterator[str]:
    """The script with one further statement: after each statement, for each name that the script binds before."""
    tree = ast.parse(code)
    lines = code.splitlines(keepends=True)
    names = sorted(
        {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    )
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    for place in sorted({(node.end_lineno or 1, node.col_offset) for node in statements}):
        for name in names:
            call = f"{' ' * place[1]}helper({name}, {{'of': {name}}}, [{name}])\n"
            yield "".join([*lines[: place[0]], call, *lines[place[0] :]])


@BY_SCRIPT
def test_unknown_call_removes_no_error(rule: str, code: str) -> None:
    before = errors(code)
    assert before or RULES[rule.partition(":")[0]].code in {"KD503", "KD106"}
    assert [text for text in with_calls(code) if errors(text) != before] == []


OPAQUE = "something_else"


def replaced(code: str, part: ast.expr, form: str) -> str:
    """The script with something else in the place of an expression on one line, which is ``{}`` in it."""
    lines = [line.encode() for line in code.splitlines(keepends=True)]
    line = lines[part.lineno - 1]
    start, end = part.col_offset, part.end_col_offset or 0
    lines[part.lineno - 1] = line[:start] + form.replace("{}", line[start:end].decode()).encode() + line[end:]
    return b"".join(lines).decode()


@BY_SCRIPT
def test_unknown_call_around_an_argument_removes_only_what_the_argument_shows(rule: str, code: str) -> None:
    """What is found without knowing the argument is found with it in an unknown call, too."""
    del rule
    calls = [node for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Call)]
    given = [part for call in calls for part in (*call.args, *(item.value for item in call.keywords))]
    parts = [part for part in given if part.lineno == part.end_lineno and not isinstance(part, ast.Starred)]
    pairs = [
        [{name for name, _ in errors(replaced(code, part, form))} for form in ("helper({})", OPAQUE)] for part in parts
    ]
    assert [number for number, (wrapped, unknown) in enumerate(pairs) if not unknown <= wrapped] == []


ONLY_CERTAIN = "KD403"
"""What may be another object has a note instead (KD404), because the error may have a fix."""
MADE = re.compile(r"(^|\.)(Sequential|Model|load_model|make_\w+|\w+Strategy|SGD|Adam|[A-Z]\w+Accuracy)$")


@BY_SCRIPT
def test_unknown_call_around_an_object_removes_no_error(rule: str, code: str) -> None:
    """The object keeps its place, its strategy and its options, because the function may return it."""
    del rule
    before = {name for name, _ in errors(code)} - {ONLY_CERTAIN}
    values = [node.value for node in ast.walk(ast.parse(code)) if isinstance(node, ast.Assign | ast.Return)]
    made = [part for part in values if isinstance(part, ast.Call) and MADE.search(ast.unparse(part.func))]
    scripts = [replaced(code, part, "helper({})") for part in made if part.lineno == part.end_lineno]
    assert [text for text in scripts if not before <= {name for name, _ in errors(text)}] == []
