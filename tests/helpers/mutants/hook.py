"""Loads one module with a change, in this process and in the processes that it starts."""

import importlib.machinery
import os
from pathlib import Path
from types import CodeType
from typing import Any

from helpers.mutants.changes import mutate

ROOT = Path(__file__).parents[3]
VARIABLE = "KDOCTOR_MUTANT"
"""Path and number of a mutant, for ``site/sitecustomize.py``."""


def install(path: str, number: int) -> None:
    """Load the module at the path, relative to the repository, with that change."""
    changed = ROOT / path
    code = compile(mutate(changed.read_text(encoding="utf-8"), number), str(changed), "exec")
    plain = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: Any, name: str) -> CodeType | None:
        return code if Path(self.path) == changed else plain(self, name)

    importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]


def announce(path: str, number: int) -> None:
    """Let every Python that this process starts install the change."""
    os.environ[VARIABLE] = f"{path}:{number}"
    folders = (str(Path(__file__).parent / "site"), os.environ.get("PYTHONPATH", ""))
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
