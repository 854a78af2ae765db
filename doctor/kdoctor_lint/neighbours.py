"""Modules of the same tree that a script imports. They are parsed, and never run."""

import ast
from functools import lru_cache
from pathlib import Path

from kdoctor_lint.flow.interpreter import Neighbours
from kdoctor_lint.script import STDIN, read_script

_MAX_BYTES = 200_000
"""Larger modules are not followed."""
_MAX_MODULES = 12
"""The modules that are followed for one script."""
_ANCESTORS = 4
"""The folders above the script in which modules are searched."""


def neighbours_of(path: str) -> Neighbours:
    """The modules that the script may import from its own tree."""
    followed: set[Path] = set()

    def find(level: int, name: str) -> ast.Module | None:
        file = None if path == STDIN else _file_of(Path(path), level, name)
        if file is None or (file not in followed and len(followed) >= _MAX_MODULES):
            return None
        followed.add(file)
        return _parsed(file, file.stat().st_mtime_ns)

    return find


def _file_of(script: Path, level: int, name: str) -> Path | None:
    folders = script.absolute().parents
    searched = folders[level - 1 : level] if level else folders[:_ANCESTORS]
    parts = name.split(".") if name else []
    try:
        for folder in searched if level else [path for parent in searched for path in (parent, parent / "src")]:
            base = folder.joinpath(*parts)
            for file in (base.with_suffix(".py"), base / "__init__.py"):
                if parts and file.is_file() and file.stat().st_size <= _MAX_BYTES:
                    return file
    except (OSError, ValueError):
        return None
    return None


@lru_cache(maxsize=64)
def _parsed(file: Path, _changed: int) -> ast.Module | None:
    """The module. Each node knows the part of the module that it is in."""
    script = read_script(str(file))
    if script.problems:
        return None
    module = ast.Module(script.body, [])
    for part in module.body:
        is_definition = isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for node in ast.walk(part):
            node.__dict__["home"] = part if is_definition else module
    return module
