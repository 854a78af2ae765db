"""Downloads one wheel with pip, as ``kdoctor matrix add`` is asked to."""

import os
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from kdoctor.errors import UsageError
from kdoctor.probes.process.child import Children

DEADLINE_S = 3600.0
"""A wheel of TensorFlow has 600 MB."""

_PLATFORMS = ("manylinux_2_28", "manylinux_2_27", "manylinux_2_17", "manylinux2014")
_PYTHONS = ("3.11", "3.10", "3.12", "3.13", "3.14", "3.9")
"""Every release from 2.10 on has a wheel for one of the first two."""


def pinned(text: str) -> Requirement | None:
    """The requirement for exactly one version: ``tensorflow==2.21.0``; None if the text is not one."""
    try:
        requirement = Requirement(text)
    except InvalidRequirement:
        return None
    operators = [item.operator for item in requirement.specifier]
    return requirement if operators == ["=="] and not requirement.url else None


def download(requirement: Requirement, folder: Path, processor: str = "x86_64") -> Path:
    """The Linux wheel of that version, by pip's own settings for the index.

    Raises:
        UsageError: pip does not find one, or fails.
    """
    why = ""
    platforms = [option for name in _PLATFORMS for option in ("--platform", f"{name}_{processor}")]
    for python in _PYTHONS:
        argv = [*_pip(), "download", "--quiet", "--no-deps", "--pre", "--only-binary=:all:"]
        argv += [
            *platforms,
            "--python-version",
            python,
            "--dest",
            str(folder),
            f"{requirement.name}{requirement.specifier}",
        ]
        end = Children().run(argv, env=os.environ, deadline_s=DEADLINE_S)
        found = sorted(folder.glob("*.whl"))
        if end.ok and found:
            return found[0]
        why = why or end.describe()
    raise UsageError(
        f"pip finds no Linux {processor} wheel of {requirement}: {why}",
        hint="Download it with another tool, and give the file: kdoctor matrix add --wheel FILE",
    )


def _pip() -> tuple[str, ...]:
    """The pip of this environment, or another one on PATH: environments made by uv have none."""
    found = shutil.which("pip") or shutil.which("pip3")
    if find_spec("pip") is None and found:
        return (found,)
    return (sys.executable, "-m", "pip")
