"""Callables of ``--model`` and ``--data``, and clear messages if they cannot be used."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdoctor_target.job.parts import PartError, call, find

MODULE = """
def build(): return "model"
def wants(path, *, size): return path
def optional(path=None, *more, **named): return "model"
def raises(): raise RuntimeError("no such bucket\\n  details")
class Maker:
    @staticmethod
    def build(): return "model"
number = 7
"""


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package ``jobs9``: a valid module, one that raises an error, and one that imports a missing module."""
    package = tmp_path / "jobs9"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "good.py").write_text(MODULE)
    (package / "sick.py").write_text("1 / 0\n")
    (package / "lacks.py").write_text("import no_such_thing9\n")
    (package / "exits.py").write_text("raise SystemExit(3)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    for name in [name for name in sys.modules if name.startswith("jobs9")]:
        del sys.modules[name]


def test_function_and_method_are_found() -> None:
    assert find("model", "jobs9.good:build")() == "model"
    assert find("model", "jobs9.good:Maker.build")() == "model"
    assert call("model", find("model", "jobs9.good:optional")) == "model"


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("jobs9.none:build", "jobs9.none"),
        ("nothing9:build", "nothing9"),
        ("jobs9.good:bild", "bild"),
        ("jobs9.good:number", "int"),
        ("jobs9.sick:build", "ZeroDivisionError: division by zero ("),
        ("jobs9.lacks:build", "ModuleNotFoundError: No module named 'no_such_thing9'"),
        ("jobs9.exits:build", "SystemExit: 3"),
    ],
)
def test_missing_callable_is_reported(place: str, expected: str) -> None:
    with pytest.raises(PartError) as error:
        find("data", place)
    assert expected in str(error.value)
    assert error.value.part == "data"
    assert "\n" not in str(error.value)


def test_required_arguments_are_named() -> None:
    with pytest.raises(PartError, match=r"wants .*\(path, size\)"):
        call("model", find("model", "jobs9.good:wants"))


def test_exception_is_reported_with_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(PartError, match=r"raises raised RuntimeError: no such bucket \(.*good\.py:5\)"):
        call("model", find("model", "jobs9.good:raises"))
    assert "Traceback" in capsys.readouterr().err
