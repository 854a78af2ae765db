"""Modules of the same tree that a script imports. They are parsed, and never run."""

import ast
import os
from functools import lru_cache
from glob import escape, glob
from pathlib import Path

from kdoctor_lint.script import STDIN, read_script

_MAX_BYTES = 200_000  # Larger modules are not followed
_MAX_MODULES = 64  # The modules that are followed for one script
_ANCESTORS = 4  # The folders above the script in which modules are searched

Found = tuple[str, int, str]
"""An import: the folder of the file that has it, the number of leading dots, and the name of the module."""


class Tree:
    """The modules that a script may import from its own tree."""

    def __init__(self, script: str) -> None:
        self._script = script
        self._followed: set[str] = set()
        self.written: dict[str, ast.Module] = {}  # The scripts that cells of the notebook write, by their paths
        self.searched: dict[Found, str | None] = {}  # What was found for each import

    def __call__(self, level: int, name: str, importer: ast.Module | None = None) -> ast.Module | None:
        """The module with this number of leading dots and this name, as another module imports it, or the script."""
        for path, module in self.written.items():
            if f"/{path}".endswith(f"/{name.replace('.', '/')}.py"):
                return module
        file = getattr(importer, "file", self._script)  # that of the notebook for a script that it writes
        found = os.path.dirname(os.path.abspath(file)), level, name  # noqa: PTH100, PTH120
        if found not in self.searched:
            self.searched[found] = None if self._script == STDIN else file_of(*found)
        file = self.searched[found]
        full = len(self._followed) >= _MAX_MODULES and importer is not None  # what the script imports counts most
        if file is None or (full and file not in self._followed):
            return None
        self._followed.add(file)
        return _parsed(file, os.stat(file).st_mtime_ns)  # noqa: PTH116


@lru_cache(maxsize=4096)
def _searched(near: str, level: int, root: str) -> list[str]:
    """The folders in which a package or a module is searched, for a file in a folder."""
    folders = [near, *map(str, Path(near).parents)]
    if level:
        return folders[level - 1 : level]
    near_by = [f"{folder}{end}" for folder in folders[:_ANCESTORS] for end in ("", "/src")]
    above = [folder.removesuffix(f"/{root}") for folder in folders if folder.endswith(f"/{root}")]
    end = next((number for number, folder in enumerate(folders) if os.path.exists(f"{folder}/.git")), -1)  # noqa: PTH110
    inside = [glob(f"{escape(folder)}/*/{root}") for folder in folders[: end + 1]]  # noqa: PTH207
    return [*near_by, *above, *(found[0].removesuffix(f"/{root}") for found in inside if len(found) == 1)]


def file_of(near: str, level: int, name: str) -> str | None:
    """The file of a module that a file in a folder imports. Strings are several times as fast as paths here."""
    parts = name.replace(".", "/")
    for folder in _searched(near, level, name.partition(".")[0]) if name else ():
        for file in (f"{folder}/{parts}.py", f"{folder}/{parts}/__init__.py"):
            if os.path.isfile(file) and os.path.getsize(file) <= _MAX_BYTES:  # noqa: PTH113, PTH202
                return file
    return None


@lru_cache(maxsize=256)
def _parsed(file: str, _changed: int) -> ast.Module | None:
    """The module. Each node knows the part of the module that it is in."""
    script = read_script(file)
    if script.problems:
        return None
    module = ast.Module(script.body, [])
    module.__dict__["file"] = file
    for part in module.body:
        is_definition = isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for node in ast.walk(part):
            node.__dict__["home"] = part if is_definition else module
    return module
