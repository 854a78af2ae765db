"""A name or a path into a checklist."""

from __future__ import annotations

import os
from pathlib import Path

from kdoctor.catalog import Catalog
from kdoctor.checklist.problems import ChecklistError, Problem
from kdoctor.checklist.resolve import Checklist, resolve
from kdoctor.yamldoc import YamlSourceError, read_yaml
from kdoctor.errors import did_you_mean


def load_checklist(name_or_path: str, catalog: Catalog) -> Checklist:
    """Read a shipped checklist by its name, or one of your own by its path.

    A path is what has a slash or ends in ``.yaml`` or ``.yml``, or names an existing file.

    Raises:
        ChecklistError: there is none of that name, it cannot be read, or something in it is wrong.
    """
    if _is_path(name_or_path, catalog):
        content = _read(Path(name_or_path))
        return _load(content, catalog, name_or_path, name_or_path)
    shipped = catalog.checklists.get(name_or_path)
    if shipped is None:
        known = ", ".join(catalog.checklists) or "none"
        message = f"no checklist of that name is shipped{did_you_mean(name_or_path, catalog.checklists)}"
        hint = f"Shipped are: {known}. For a file of your own give its path, such as ./{name_or_path or 'job'}.yaml"
        raise _error(name_or_path or "--checklist", message, hint)
    return _load(shipped.read_bytes(), catalog, f"{name_or_path} (shipped)", "shipped")


def read_text(name_or_path: str, catalog: Catalog) -> str:
    """The text of a checklist that :func:`load_checklist` accepts, with its comments."""
    file = Path(name_or_path) if _is_path(name_or_path, catalog) else catalog.checklists[name_or_path]
    return file.read_text(encoding="utf-8-sig")


def _is_path(text: str, catalog: Catalog) -> bool:
    if "/" in text or "\\" in text or text.endswith((".yaml", ".yml")):
        return True
    return bool(text) and text not in catalog.checklists and os.path.isfile(text)  # noqa: PTH113 - it never raises


def _read(path: Path) -> bytes:
    try:
        if path.exists() and not path.is_file():
            what = "a directory" if path.is_dir() else "not a regular file"
            raise _error(str(path), f"this is {what}, not a checklist")
        return path.read_bytes()
    except FileNotFoundError as error:
        near = [item.name for item in path.parent.glob("*.y*ml")] if path.parent.is_dir() else []
        raise _error(str(path), f"there is no such file{did_you_mean(path.name, near)}") from error
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _error(str(path), f"cannot be read: {words}") from error


def _load(content: bytes, catalog: Catalog, shown: str, origin: str) -> Checklist:
    try:
        source = read_yaml(content)
    except YamlSourceError as error:
        raise ChecklistError(shown, [error.problem]) from error
    checklist, problems = resolve(source, catalog, origin)
    if checklist is None:
        raise ChecklistError(shown, problems)
    return checklist


def _error(source: str, message: str, hint: str | None = None) -> ChecklistError:
    return ChecklistError(source, [Problem(line=None, column=None, message=message)], hint=hint)
