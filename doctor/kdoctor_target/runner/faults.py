"""Finds the installed packages that make an import fail: files that are missing or changed, or another file first."""

from __future__ import annotations

import csv
import inspect
import os
import pkgutil
import re
import sys
import sysconfig
import traceback
from functools import lru_cache
from importlib import metadata
from typing import Any, Dict, Iterable, Iterator, List, Optional, Pattern, Sequence, Set, Tuple

Fault = Dict[str, Any]
_Row = Tuple[str, Optional[int]]
_UNCHECKED = re.compile(r"\.(dist|egg)-info/|\.pyc$|^\.\.")
"""Metadata, compiled files, and scripts outside the packages: an import does without them."""


def find_faults(error: BaseException) -> List[Fault]:
    """The faults by the names of ``PackageFault``'s fields: those that the error mentions, or else all."""
    try:
        return _search(error)
    except Exception:  # a broken installation must not hide the error of the import
        return []


def _search(error: BaseException) -> List[Fault]:
    text = "\n".join(_mentioned(error))
    found: List[Tuple[Fault, bool]] = []
    seen = set()
    for distribution in metadata.distributions():
        name = distribution.metadata["Name"]
        if not name or name in seen:
            continue
        seen.add(name)
        recorded, folder = list(recorded_files(distribution)), str(distribution.locate_file(""))
        package: Fault = {"package": name, "version": distribution.version, "files": len(recorded)}
        damage, shadow = _damage(recorded, folder, text), shadowing(recorded, folder, sys.path)
        if damage:
            is_mentioned = name in text or any(os.path.join(folder, path) in text for path, _ in recorded)
            found.append((dict(package, **damage), is_mentioned))
        elif shadow and shadow in text:
            found.append((dict(package, file=shadow, shadowed=True), True))
    mentioned = [fault for fault, is_mentioned in found if is_mentioned]
    return mentioned or [fault for fault, _ in found]


def _mentioned(error: BaseException) -> Iterator[str]:
    """Everything that the error and its causes say about modules and files."""
    current: Optional[BaseException] = error
    while current is not None:
        yield "".join(traceback.format_exception(type(current), current, current.__traceback__, chain=False))
        module = getattr(current, "obj", None)  # of an AttributeError, from Python 3.10 on
        yield from (str(item) for item in (getattr(current, "path", ""), getattr(module, "__file__", "")))
        name = getattr(current, "name", None)
        if isinstance(current, ImportError) and name:
            yield from (os.path.join(folder, *name.split(".")) for folder in sys.path)
        current = current.__cause__ or current.__context__


@lru_cache(maxsize=None)  # the same folders are asked for once for every distribution
def real_path(path: str) -> str:
    """The path without links."""
    return os.path.realpath(path)


def recorded_files(distribution: metadata.Distribution, kind: Pattern[str] = re.compile("")) -> Iterator[_Row]:
    """The recorded files that an import may need, and their sizes; of the lines with that pattern."""
    lines = (distribution.read_text("RECORD") or "").splitlines()
    for row in csv.reader(filter(kind.search, lines)):
        if row and not _UNCHECKED.search(row[0]):
            yield row[0], int(row[2]) if len(row) > 2 and row[2].isdigit() else None  # noqa: PLR2004 - path, hash, size


def compared(rows: List[_Row], folder: str) -> Tuple[List[str], List[str]]:
    """The missing files, and those of another size."""
    missing, changed = [], []
    for path, size in rows:
        try:
            found = os.stat(os.path.join(folder, path)).st_size
        except OSError:
            missing.append(path)
        else:
            if size is not None and found != size:
                changed.append(path)
    return missing, changed


def _damage(rows: List[_Row], folder: str, text: str) -> Optional[Fault]:
    """The missing files, and those of another size that the text mentions: people change files on purpose, too."""
    missing, others = compared(rows, folder)
    changed = [path for path in others if os.path.join(folder, path) in text]
    if not missing and not changed:
        return None
    return {"file": (missing or changed)[0], "missing": len(missing), "changed": len(changed)}


def shadowing(rows: List[_Row], folder: str, path: Sequence[str]) -> Optional[str]:
    """The file that Python imports instead of one of these: it is in a folder that is searched earlier."""
    real = real_path(folder)
    standard = _standard_folders()
    names = sorted({_imported_as(path) for path, _ in rows} - {""})
    for entry in path:
        here = real_path(entry or os.getcwd())
        if here == real:
            return None
        if here not in standard:
            for found in hiding(names, entry):
                return found
    return None


@lru_cache(maxsize=None)
def _standard_folders() -> Set[str]:
    """The folders of Python's library."""
    return {real_path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}


def _imported_as(path: str) -> str:
    """The name by which a job imports a recorded file or its package; empty for other files."""
    first, *rest = path.split("/")
    is_package = rest[-1:] == ["__init__.py"] and len(rest) <= 2  # noqa: PLR2004 - google/protobuf/__init__.py
    return first if is_package else inspect.getmodulename(path) or "" if not rest else ""


def hiding(names: Iterable[str], folder: str) -> Iterator[str]:
    """What Python would import from the folder by these names, without an import: modules of any kind, and packages."""
    finder: Any = pkgutil.get_importer(folder) if os.path.isdir(folder or os.getcwd()) else None
    for found in map(finder.find_spec, names) if finder else ():
        if found and found.loader and found.origin:  # a folder without __init__.py hides nothing
            yield found.origin
