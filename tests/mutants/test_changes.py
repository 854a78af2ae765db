"""The mutants of `make mutants`: which changes are made, and that answered survivors still exist."""

import ast
from collections.abc import Sequence
from pathlib import Path

from helpers.cases import cases
from helpers.mutants.changes import lines_of, mutants, mutate

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).parent / "equivalent.txt"


def changed(source: str) -> list[str]:
    return [ast.unparse(mutate(source, mutant.number)) for mutant in mutants(source, "x.py")]


@cases(
    ("a < b", ["a <= b"]),
    ("a is b", ["a is not b"]),
    ("a == b != c", ["a != b != c", "a == b == c"]),
    ("a and b", ["a or b"]),
    ("a + b", ["a - b"]),
    ("x += 1", ["x -= 1", "x += 2"]),
    ("if a:\n    b", ["if not a:\n    b"]),
    ("[x for x in y if x]", ["[x for x in y if not x]"]),
    ("any(x)", ["all(x)"]),
    ("x = True", ["x = False"]),
    ("def f():\n    return 1", ["def f():\n    return None", "def f():\n    return 2"]),
    ("def f():\n    yield a", ["def f():\n    yield from ()"]),
    ("def f():\n    g()", ["def f():\n    pass"]),
    (
        "def f():\n    try:\n        g()\n    except E:\n        raise",
        [
            "def f():\n    try:\n        pass\n    except E:\n        raise",
            "def f():\n    try:\n        g()\n    except E:\n        pass",
        ],
    ),
    ("for x in y:\n    continue", ["for x in y:\n    break"]),
)
def test_each_change_is_one_mutant(source: str, expected: Sequence[str]) -> None:
    assert changed(source) == expected


@cases(
    '"""text"""',
    "x: Literal[1] = y",
    "TABLE = {'a': 1, 'b': [2, 3]}",
    "f(x, strict=True)",
    "import a",
    "assert x == 1",
    "x = 'a'",
)
def test_what_states_no_behaviour_is_not_changed(source: str) -> None:
    assert changed(source) == []


def test_mutant_knows_its_outermost_function() -> None:
    source = "class A:\n    def f(self, x=1):\n        def g():\n            return 2\n        return g\n"
    assert [mutant.function for mutant in mutants(source, "x.py")] == [None, "A.f", "A.f", "A.f"]
    assert list(lines_of(source)) == [("A.f", 2, 5)]


def test_answered_mutants_exist_and_have_reasons() -> None:
    lines = [line for line in EQUIVALENT.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    for line in lines:
        path, code, change, reason = line.split(" | ")
        source = (ROOT / path).read_text(encoding="utf-8")
        text = source.splitlines()
        found = {(text[mutant.line - 1].strip(), mutant.change) for mutant in mutants(source, path)}
        assert (code, change) in found, line
        assert len(reason) > 10
