"""libyaml and PyYAML read the same values at the same places, with the same errors."""

from pathlib import Path

import pytest
import yaml

import kdoctor_checklists
from helpers.cases import cases
from kdoctor.yamldoc.source import Source, YamlSourceError, read_yaml

SHIPPED = sorted(Path(kdoctor_checklists.__file__).parent.glob("*.yaml"))
PECULIAR = """\
a: [b, {c: d}]
x: 'it''s'
y: "\\u00e9\\t"
ü: é é # a comment
z: |
  block

   é text
w: >-
  folded

  more
d: 2030-01-01
n: ~
f: 1e3
yes: no
o: 010
e: {a: 1, b: [x:y, "u"]}
"""


def both(monkeypatch: pytest.MonkeyPatch, text: str) -> tuple[Source | str, Source | str]:
    def read(*, quickly: bool) -> Source | str:
        with monkeypatch.context() as patched:
            patched.setattr(yaml, "__with_libyaml__", quickly and yaml.__with_libyaml__)
            try:
                return read_yaml(text.encode())
            except YamlSourceError as error:
                return str(error.problem)

    return read(quickly=True), read(quickly=False)


@pytest.mark.parametrize("text", [PECULIAR, *(file.read_text(encoding="utf-8") for file in SHIPPED)])
def test_libyaml_and_pyyaml_read_the_same_nodes(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    quick, slow = both(monkeypatch, text)
    assert isinstance(quick, Source)
    assert quick == slow


@cases(
    "a: [b\nc: d\n",
    "a: b\n c: d\n",
    "a:\n\tb: c\n",
    "a: x\ty\n",
    "? q\n",
    "? q\n: r\n",
    "a: \ufeffb\n",
    "a: 'b\n",
    "a: *b\n",
    "a: 1\n---\nb: 2\n",
    "a: \x07\n",
    "a: {b: [c: d}\n",
    "@a: b\n",
    "[" * 20 + "]" * 20 + "\n",
)
def test_libyaml_and_pyyaml_report_the_same_errors(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    quick, slow = both(monkeypatch, text)
    assert quick == slow


@cases(
    ('a: 1\nb: "\\U00110000"\n', 2),
    ('a: "\\UFFFFFFFF"\n', 1),
    ('a: "\\U0010FFFF"\nb: "\\U80000000"\n', 2),
    (f"%YAML {'1' * 5000}.1\n---\na: 1\n", 1),
)
def test_number_that_python_does_not_convert_is_an_error(text: str, line: int) -> None:
    with pytest.raises(YamlSourceError) as caught:
        read_yaml(text.encode())
    assert caught.value.problem.line == line
