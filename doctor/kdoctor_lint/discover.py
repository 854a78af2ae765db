"""From what was named to the files that are looked at."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from kdoctor_lint.source import STDIN

_SUFFIXES = (".py", ".ipynb")
_SKIPPED = frozenset({"__pycache__", "site-packages", "dist-packages", "node_modules", "venv", "env", "__pypackages__"})


def files_of(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """The files, each once and in order, and the folders in which there is none.

    A file that is named is taken whatever it is called; in a folder, scripts and notebooks, leaving out hidden
    folders, virtual environments and installed packages. Links to folders are not followed.
    """
    files: dict[str, None] = {}
    empty: list[str] = []
    for path in paths:
        if path != STDIN and Path(path).is_dir():
            found = list(_scripts(path))
            files.update(dict.fromkeys(found))
            if not found:
                empty.append(path)
        else:
            files[path] = None
    return list(files), empty


def _scripts(folder: str) -> Iterator[str]:
    for parent, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not _left_out(parent, name))
        for name in sorted(names):
            if name.endswith(_SUFFIXES) and not name.startswith("."):
                yield str(Path(parent, name))


def _left_out(parent: str, name: str) -> bool:
    return name.startswith(".") or name in _SKIPPED or Path(parent, name, "pyvenv.cfg").exists()
