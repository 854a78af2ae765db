"""The rules of ``tests/style.py`` find what they are for."""

from __future__ import annotations

import pytest

from style import File, faults, messages, repeated


def found(name: str, text: str) -> list[str]:
    return [line.removeprefix(f"{name}:").partition(":")[0] for line in faults(File(name, text))]


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("docs/x.md", "It is done correctly.\nIt is Rightly done.\n", ["2"]),
        ("docs/x.py", '"""It is\n    Rightly done."""\n', ["1"]),
        ("docs/x.py", 'X = "this lock " "is no lock"\n', ["1"]),
        ("docs/x.py", 'X = "it is\\nno lock"\n', ["1"]),
        ("docs/x.py", 'X = "there is no lock"  # rubbish\n', ["1"]),
        ("tests/test_x.py", '"""Module."""\n\nTEXT = "rubbish"\n"""Constant: rubbish."""  # rubbish\n', ["4", "4"]),
        ("tests/test_x.py", "def test_the_lock() -> None: ...\n", ["1"]),
        ("tests/test_x.py", 'X = """\ndef test_the_lock() -> None: ...\n"""\n', []),
        ("doctor/kdoctor/anew.py", "", ["1"]),
        ("doctor/kdoctor/x.py", "\n" * 451, ["451"]),
        ("doctor/kdoctor/x.py", "def f():\n" + "    x = 1\n" * 90, ["1"]),
        ("doctor/kdoctor/x.py", "def f():\n" + "    x = 1\n" * 89, []),
        ("doctor/kdoctor/x/__init__.py", "from __future__ import annotations\nfrom kdoctor.y import z\n", ["2"]),
        ("doctor/kdoctor/cli/__init__.py", "from kdoctor.y import z\n", []),
    ],
)
def test_fault_is_found_at_its_line(name: str, text: str, lines: list[str]) -> None:
    assert found(name, text) == lines


@pytest.mark.parametrize(
    ("code", "is_fault"),
    [
        ("f'{len(gpus)} GPUs answer'", True),
        ("f'{case.replicas} replicas train'", True),
        ("f'none of {len(names)} shared libraries'", True),
        ("f'{sum(found):d} errors'", True),
        ("f'{counted(len(gpus), \"GPU\")} answer'", False),
        ("f'{len(head)} bytes'", False),
        ("f'{len(ids)} is less'", False),
        ("f'run {number} has'", False),
        ("f'{name} checks'", False),
        ("f'{len(near)} of 8'", False),
    ],
)
def test_plural_after_a_count_is_found(code: str, *, is_fault: bool) -> None:
    assert bool(found("doctor/kdoctor/x.py", code)) is is_fault


def test_message_in_two_modules_is_found() -> None:
    text = "one two three four five six seven eight nine ten eleven twelve thirteen"
    given = [(name, messages(File(name, f"X = {text!r}\n"))) for name in ("a.py", "b.py")]
    assert [line.partition(":")[0] for line in repeated(given)] == ["b.py"]
    assert list(repeated([("a.py", messages(File("a.py", f'"""{text}"""\n'))), given[1]])) == []
