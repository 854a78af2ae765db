"""The rules of ``tests/style.py`` find what they are for."""

import subprocess

import pytest

from helpers.cases import cases
from style import ROOT, File, faults, messages, over_budget, repeated, too_many_targets


def found(name: str, text: str) -> list[str]:
    return [line.removeprefix(f"{name}:").partition(":")[0] for line in faults(File(name, text))]


@cases(
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
)
def test_fault_is_found_at_its_line(name: str, text: str, lines: list[str]) -> None:
    assert found(name, text) == lines


@cases(
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
)
def test_plural_after_a_count_is_found(code: str, *, is_fault: bool) -> None:
    assert bool(found("doctor/kdoctor/x.py", code)) is is_fault


def test_message_in_two_modules_is_found() -> None:
    text = "one two three four five six seven eight nine ten eleven twelve thirteen"
    given = [(name, messages(File(name, f"X = {text!r}\n"))) for name in ("a.py", "b.py")]
    assert [line.partition(":")[0] for line in repeated(given)] == ["b.py"]
    assert list(repeated([("a.py", messages(File("a.py", f'"""{text}"""\n'))), given[1]])) == []


@pytest.mark.parametrize(("lines", "word"), [(1001, "take lines away"), (1000, None), (980, None), (979, "lower it")])
def test_package_has_a_budget_that_goes_down(lines: int, word: str | None) -> None:
    assert [word in line for line in over_budget({"doctor/x": lines}, {"doctor/x": 1000}) if word] == [True] * bool(
        word
    )
    assert bool(list(over_budget({"doctor/x": lines}, {"doctor/x": 1000, "doctor/gone": 5}))) is bool(word)


def test_package_without_a_budget_is_over_it() -> None:
    assert len(list(over_budget({"doctor/x": 1}, {}))) == 1


def test_help_has_room_for_twelve_targets() -> None:
    assert list(too_many_targets("x: ## Do it\n" * 12)) == []
    assert len(list(too_many_targets("x: y ## Do it\n" * 13))) == 1


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="git is asked which files are kept")
def test_repository_holds_text_only() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [ROOT / name for name in filter(None, listed.split("\0"))]
    assert [file for file in files if file.is_file() and b"\0" in file.read_bytes()] == []
