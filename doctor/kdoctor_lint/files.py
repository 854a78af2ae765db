"""From the given paths to the files to lint."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from kdoctor_lint.script import STDIN

_SUFFIXES = (".py", ".ipynb")
_SKIPPED = frozenset({"__pycache__", "site-packages", "dist-packages", "node_modules", "venv", "env", "__pypackages__"})


def find_files(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """The files, each once and in order, and the folders without any.

    A file given by name is included whatever its suffix. Folders are searched for scripts and notebooks, except
    hidden folders, virtual environments and installed packages. Links to folders are not followed.
    """
    files: dict[str, None] = {}
    empty: list[str] = []
    for path in paths:
        if path == STDIN or not Path(path).is_dir():
            files[path] = None
            continue
        found = list(_scripts(path))
        files.update(dict.fromkeys(found))
        if not found:
            empty.append(path)
    return list(files), empty


def _scripts(folder: str) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _is_skipped(parent, name))
        for name in sorted(names):
            if name.endswith(_SUFFIXES) and not name.startswith("."):
                yield str(Path(parent, name))


def _is_skipped(parent: str, name: str) -> bool:
    return name.startswith(".") or name in _SKIPPED or Path(parent, name, "pyvenv.cfg").exists()
