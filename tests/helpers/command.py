"""The command line as a user runs it, and environments for it to examine."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

KDOCTOR = (sys.executable, "-m", "kdoctor")


def environ(**changes: str) -> dict[str, str]:
    """The environment of this process without variables that choose a target or a width, and without run history."""
    removed = ("VIRTUAL_ENV", "CONDA_PREFIX", "COLUMNS", "CUDA_VISIBLE_DEVICES", "KDOCTOR_DEBUG")
    return {
        **{name: value for name, value in os.environ.items() if name not in removed},
        "KDOCTOR_NO_HISTORY": "1",
        **changes,
    }


def kdoctor(
    *arguments: str | Path,
    cwd: Path | None = None,
    timeout_s: float = 120,
    variables: Mapping[str, str] | None = None,
    **changes: str,
) -> subprocess.CompletedProcess[str]:
    """Run ``kdoctor`` with these arguments and environment variables."""
    command: Sequence[str] = [*KDOCTOR, *map(str, arguments)]
    env = environ(**{**(variables or {}), **changes})
    return subprocess.run(command, check=False, capture_output=True, text=True, env=env, cwd=cwd, timeout=timeout_s)


def make_target(folder: Path, *, tensorflow: str | None = None) -> Path:
    """A virtual environment without packages, or with a ``tensorflow`` whose ``__init__.py`` is the given text."""
    venv.create(folder, with_pip=False, symlinks=True)
    if tensorflow is not None:
        site = next(folder.glob("lib/python*/site-packages"))
        _install(site, "tensorflow", "2.21.0", tensorflow)
        _install(site, "keras", "3.15.1", "")
    return folder


def _install(site: Path, name: str, version: str, source: str) -> None:
    (site / name).mkdir()
    (site / name / "__init__.py").write_text(source, encoding="utf-8")
    metadata = site / f"{name}-{version}.dist-info"
    metadata.mkdir()
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nRequires-Python: >=3.9\n"
    (metadata / "METADATA").write_text(text, encoding="utf-8")
