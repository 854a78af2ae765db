"""A folder with packages that are recorded as pip does."""

import sys
from pathlib import Path
from typing import Any

import pytest

from kdoctor_target.runner.faults import Fault


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the search path with the packages ``orchid`` and ``fern``, recorded as pip does."""
    folder = tmp_path / "site"
    for name in ("orchid", "fern"):
        write(folder / name / "__init__.py", "from . import leaf\n" if name == "orchid" else "")
        write(folder / name / "leaf.py", "green = True\n")
        rows = [
            f"{name}/__init__.py,,{len((folder / name / '__init__.py').read_text())}",
            f"{name}/leaf.py,sha256=a,13",
        ]
        rows += [f"{name}-1.0.dist-info/RECORD,,", f"../../bin/{name},,10", f"{name}/leaf.pyc,,"]
        write(folder / f"{name}-1.0.dist-info/RECORD", "\n".join(rows))
        write(folder / f"{name}-1.0.dist-info/METADATA", f"Name: {name}\nVersion: 1.0\n")
    monkeypatch.setattr(sys, "path", [str(folder), *sys.path])
    for loaded in [name for name in sys.modules if name.partition(".")[0] in ("orchid", "fern")]:
        monkeypatch.delitem(sys.modules, loaded)  # of another test
    return folder


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def fault(**changes: Any) -> Fault:
    return {"package": "orchid", "version": "1.0", "files": 2, "missing": 0, "changed": 0, **changes}
