"""Real environments with an installed kdoctor and its dependencies, but without TensorFlow, Keras or JAX."""

import re
import shutil
import subprocess
import sys
import venv
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.egg-info")


def build_wheel(folder: Path) -> Path:
    """The wheel of keras-doctor, built from a copy of the sources."""
    copy = folder / "sources"
    copy.mkdir()
    for name in ("doctor", "checks", "checklists"):
        shutil.copytree(ROOT / name, copy / name, ignore=_LEFT_OUT)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy2(ROOT / name, copy)
    program = "from setuptools import build_meta; import sys; build_meta.build_wheel(sys.argv[1])"
    subprocess.run([sys.executable, "-c", program, str(folder)], cwd=copy, check=True, capture_output=True)
    return next(folder.glob("keras_doctor-*.whl"))


def make_environment(folder: Path) -> Path:
    """A virtual environment with the dependencies of keras-doctor, as links to those of this process."""
    venv.create(folder, with_pip=True, symlinks=True)
    site = next(folder.glob("lib/python*/site-packages"))
    for name in _dependencies("keras-doctor"):
        distribution = metadata.distribution(name)
        for first in {file.parts[0] for file in distribution.files or ()} - {"..", "__pycache__"}:
            (site / first).symlink_to(Path(str(distribution.locate_file(first))))
    return folder


def _dependencies(name: str) -> set[str]:
    found: set[str] = set()
    waiting = [name]
    while waiting:
        for line in metadata.requires(waiting.pop()) or ():
            requirement = Requirement(line)
            wanted = re.sub(r"[-_.]+", "-", requirement.name).lower()
            if wanted not in found and (not requirement.marker or requirement.marker.evaluate({"extra": ""})):
                found.add(wanted)
                waiting.append(wanted)
    return found


def pip_install(environment: Path, *arguments: str | Path) -> None:
    """Install without an index and without dependencies."""
    command = [str(environment / "bin/python"), "-m", "pip", "install", "--quiet"]
    options = ["--no-index", "--no-deps", "--no-compile", "--disable-pip-version-check"]
    subprocess.run([*command, *options, *map(str, arguments)], check=True, capture_output=True)
