"""Environments with a real TensorFlow, created by pip. ``MATRIX_PYTHONS`` adds interpreters to those on PATH."""

import os
import shutil
import subprocess
from pathlib import Path


def interpreter(minor: str) -> str | None:
    """An interpreter of the minor release that starts."""
    named = [path for path in os.environ.get("MATRIX_PYTHONS", "").split(os.pathsep) if path]
    for candidate in (*named, f"python{minor}"):
        path = shutil.which(candidate)
        ask = "import sys; print('{}.{}'.format(*sys.version_info))"
        if path:
            done = subprocess.run([path, "-c", ask], check=False, capture_output=True, text=True)
            if done.returncode == 0 and done.stdout.strip() == minor:
                return path
    return None


def make(folder: Path, python: str, case: tuple[str, str | None, str]) -> Path:
    """The environment. A finished one is reused."""
    tensorflow, keras, minor = case
    environment = folder / f"{tensorflow}-{minor}-{keras or 'resolved'}"
    executable, finished = environment / "bin/python", environment / "finished"
    if not finished.exists():
        subprocess.run([python, "-m", "venv", "--clear", environment], check=True)
        pip = [str(executable), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        pinned = [f"tensorflow=={tensorflow}", *([f"keras=={keras}"] if keras else [])]
        subprocess.run([*pip, *pinned], check=True)
        finished.touch()
    return executable
