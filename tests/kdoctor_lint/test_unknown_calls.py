"""A call of an unknown function neither creates nor destroys what is known of its arguments."""

import ast
from collections.abc import Iterator

import pytest
from benchmarks.lint_labelled import JUDGED, cases

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
MAY_BUILD = "KD503"
"""Code outside the file may build an optimizer that it gets, so this error is withheld."""


def errors(code: str) -> list[tuple[str, str]]:
    """The errors and warnings, each with its line of code."""
    found, _ = lint_script(parse_script("train.py", code.encode()), RULES)
    return [
        (item.rule.code, item.source)
        for item in found
        if item.rule.severity is not Severity.INFO and item.rule.code != MAY_BUILD
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


@pytest.mark.parametrize(("rule", "code"), SCRIPTS, ids=[rule for rule, _ in SCRIPTS])
def test_unknown_call_removes_no_error(rule: str, code: str) -> None:
    before = errors(code)
    assert before or RULES[rule.partition(":")[0]].code == MAY_BUILD
    assert [text for text in with_calls(code) if errors(text) != before] == []
