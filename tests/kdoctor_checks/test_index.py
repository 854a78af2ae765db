"""The index of checks says what the modules say, and a module that it does not know as it stands is imported."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import kdoctor_checks
from kdoctor.check import Check, CheckDefinitionError
from kdoctor.check_index import Index
from kdoctor.model import Severity
from kdoctor_checks import collect, index_of

CHECK = '''
from collections.abc import Iterator
from typing import Literal
from kdoctor.check import check
from kdoctor.facts import Host
from kdoctor.model import Outcome, Severity
from house_checks.host._limits import LEAST

@check("host.{slug}", severity=Severity.{severity})
def function(
    host: Host, *, least: float = LEAST, names: tuple[str, ...] = ("a", "b"), level: Literal["near", "far"] = "near"
) -> Iterator[Outcome]:
    """It is good.

    Why: it must be.
    Remedy: mend it.
    Source: https://example.org
    """
    yield from ()
'''


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package with two checks and a helper."""
    folder = tmp_path / "house_checks"
    (folder / "host").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "host" / "__init__.py").touch()
    (folder / "host" / "_limits.py").write_text("LEAST = 1.5\n")
    (folder / "host" / "one.py").write_text(CHECK.format(slug="one", severity="ERROR"))
    (folder / "host" / "two.py").write_text(CHECK.format(slug="two", severity="ERROR"))
    monkeypatch.syspath_prepend(str(tmp_path))
    # Files of one size that are written within a second pass for one another as bytecode.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield folder
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.startswith("house_checks")]:
        del sys.modules[name]


def package() -> ModuleType:
    """The package as if kdoctor had just been started."""
    forget()
    importlib.invalidate_caches()
    return importlib.import_module("house_checks")


def checks_with(index: str) -> dict[str, Check]:
    return {check.id: check for check in collect(package(), Index(index))}


def test_the_index_of_the_built_in_checks_is_up_to_date() -> None:
    written = Path(kdoctor_checks.__file__).with_name("index.json").read_text(encoding="utf-8")
    assert written == index_of(kdoctor_checks), "run: make docs"


def test_every_built_in_check_is_what_the_index_says() -> None:
    for known, imported in zip(kdoctor_checks.checks(), collect(kdoctor_checks), strict=True):
        assert known == imported
        assert known.body == imported.body


def test_reading_the_index_imports_no_check_and_no_facts() -> None:
    program = "import sys, kdoctor_checks; print(len(kdoctor_checks.checks()), *sys.modules)"
    output = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout
    count, *loaded = output.split()
    assert int(count) > 100
    assert [name for name in loaded if name.startswith(("kdoctor_checks.", "kdoctor.facts"))] == []


def test_a_known_check_is_imported_when_its_body_is_asked_for(house: Path) -> None:
    index = index_of(package())
    one = checks_with(index)["host.one"]
    assert "house_checks.host.one" not in sys.modules
    assert (one.severity, one.title, one.why, one.parameters["least"].default) == (
        Severity.ERROR,
        "It is good.",
        "It must be.",
        1.5,
    )
    assert not one.is_imported
    assert one.remedy == "Mend it."
    assert "house_checks.host.one" in sys.modules
    assert "house_checks.host.two" not in sys.modules


def test_an_edited_module_counts_at_once_and_the_others_stay_known(house: Path) -> None:
    index = index_of(package())
    (house / "host" / "one.py").write_text(CHECK.format(slug="one", severity="INFO"))
    checks = checks_with(index)
    assert checks["host.one"].severity is Severity.INFO
    assert checks["host.one"].is_imported
    assert not checks["host.two"].is_imported


def test_an_edited_helper_counts_at_once(house: Path) -> None:
    index = index_of(package())
    (house / "host" / "_limits.py").write_text("LEAST = 2.5\n")
    assert checks_with(index)["host.two"].parameters["least"].default == 2.5


def test_another_end_of_lines_is_no_edit(house: Path) -> None:
    index = index_of(package())
    text = (house / "host" / "one.py").read_bytes()
    (house / "host" / "one.py").write_bytes(text.replace(b"\n", b"\r\n"))
    assert not checks_with(index)["host.one"].is_imported


def test_a_new_module_is_found_and_one_that_is_gone_is_not(house: Path) -> None:
    index = index_of(package())
    (house / "host" / "one.py").unlink()
    (house / "host" / "three.py").write_text(CHECK.format(slug="three", severity="ERROR"))
    assert list(checks_with(index)) == ["host.three", "host.two"]


@pytest.mark.parametrize(
    "index",
    [
        "",
        "no JSON",
        "[]",
        "3",
        '{"schema": "kdoctor/check-index/v1"}',
        '{"schema": "kdoctor/check-index/v2"}',
        '{"schema": 1, "helpers": {}, "checks": []}',
    ],
)
def test_what_is_no_index_is_as_none(house: Path, index: str) -> None:
    assert [check.is_imported for check in checks_with(index).values()] == [True, True]


def test_a_definition_that_changed_with_something_else_is_told(house: Path) -> None:
    (house.parent / "house_limits.py").write_text("LEAST = 1.5\n")
    (house / "host" / "_limits.py").write_text("from house_limits import LEAST\n")
    index = index_of(package())
    (house.parent / "house_limits.py").write_text("LEAST = 2.5\n")
    one = checks_with(index)["host.one"]
    del sys.modules["house_limits"]
    with pytest.raises(CheckDefinitionError, match=r"host\.one: the index of checks says otherwise"):
        _ = one.facts


def test_a_type_that_the_index_cannot_hold_is_refused(house: Path) -> None:
    text = CHECK.format(slug="one", severity="ERROR").replace("least: float = LEAST", "least: complex = 1j")
    (house / "host" / "one.py").write_text(text)
    with pytest.raises(CheckDefinitionError, match=r"host\.one: .* does not know the type of 'least'"):
        index_of(package())
