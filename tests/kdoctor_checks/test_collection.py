import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from helpers.cases import cases
from kdoctor.catalog.collect import collect
from kdoctor.check import CheckDefinitionError
from kdoctor.model import family_order
from kdoctor_checks import checks

CHECK = '''
from collections.abc import Iterator
from kdoctor.check import check
from kdoctor.facts import Host
from kdoctor.model import Outcome, Severity

@check("{id}", severity=Severity.ERROR)
def function(host: Host) -> Iterator[Outcome]:
    """It is good.

    Why: it must be.
    Remedy: fix it.
    Source: https://example.org
    """
    yield from ()
'''


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "house_checks"
    (folder / "host").mkdir(parents=True)
    (folder / "__init__.py").touch()
    (folder / "host" / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    for name in [name for name in sys.modules if name.startswith("house_checks")]:
        del sys.modules[name]


def imported() -> ModuleType:
    importlib.invalidate_caches()
    return importlib.import_module("house_checks")


def test_checks_are_sorted_by_family_and_id() -> None:
    found = checks()
    assert len(found) == len({check.id for check in found})
    assert [check.id for check in found] == [
        check.id for check in sorted(found, key=lambda check: (family_order(check.family), check.id))
    ]
    assert {check.family for check in found} >= {"versions", "driver", "gpu", "topology", "host", "environment"}


def test_prerequisites_exist_and_are_not_circular() -> None:
    by_id = {check.id: check for check in checks()}
    for check in by_id.values():
        open_ids, seen = list(check.requires), set()
        while open_ids:
            needed = open_ids.pop()
            assert needed in by_id, f"{check.id} requires {needed}"
            assert needed != check.id
            if needed not in seen:
                seen.add(needed)
                open_ids += by_id[needed].requires


def test_titles_are_one_sentence_and_sources_are_public_pages() -> None:
    for check in checks():
        assert check.title.endswith("."), check.id
        assert len(check.title) <= 120, check.id
        assert all(source.startswith("https://") and " " not in source for source in check.sources), check.id


def test_checks_and_helpers_are_collected(package: Path) -> None:
    (package / "_shared.py").touch()
    (package / "host" / "_shared.py").touch()
    (package / "host" / "large_enough.py").write_text(CHECK.format(id="host.large-enough"))
    assert [check.id for check in collect(imported())] == ["host.large-enough"]


@cases(("host.other", "belongs in host/other.py"), ("gpu.sound", "belongs in gpu/sound.py"))
def test_check_in_the_wrong_file_is_an_error(package: Path, check_id: str, message: str) -> None:
    (package / "host" / "sound.py").write_text(CHECK.format(id=check_id))
    with pytest.raises(CheckDefinitionError, match=message):
        collect(imported())


def test_two_checks_with_one_id_are_an_error(package: Path) -> None:
    (package / "host" / "a.py").write_text(CHECK.format(id="host.a"))
    (package / "host" / "b.py").write_text(CHECK.format(id="host.a"))
    with pytest.raises(CheckDefinitionError, match=r"host/b\.py: .*host/a\.py"):
        collect(imported())


@pytest.mark.parametrize("count", [0, 2])
def test_file_without_exactly_one_check_is_an_error(package: Path, count: int) -> None:
    text = CHECK.format(id="host.sound") + CHECK.format(id="host.other").replace("function", "second")
    (package / "host" / "sound.py").write_text(text if count else "")
    with pytest.raises(CheckDefinitionError, match=rf"host/sound\.py: .*{count}"):
        collect(imported())


def test_loading_the_checks_imports_nothing_heavy() -> None:
    program = "import sys, kdoctor_checks; kdoctor_checks.checks(); print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert not {"tensorflow", "numpy", "pynvml", "psutil", "rich", "typer"} & set(loaded)
