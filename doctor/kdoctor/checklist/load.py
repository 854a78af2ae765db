"""A name or a path into a checklist."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from kdoctor.checklist.document import refuse_other_schema
from kdoctor.checklist.extends import Override, lay_over, own_problems
from kdoctor.checklist.problems import ChecklistError, Problem
from kdoctor.checklist.resolve import Checklist, resolve
from kdoctor.engine.catalog import Catalog
from kdoctor.errors import did_you_mean
from kdoctor.yamldoc import Source, YamlSourceError, read_yaml


class Reader(Protocol):
    """Where checklists that are named by a path are read: the disk, or a revision of a repository."""

    def __call__(self, path: Path) -> bytes:
        """The file's content.

        Raises:
            ChecklistError: it is not there or cannot be read.
        """
        ...


def load_checklist(
    name_or_path: str, catalog: Catalog, *, read: Reader | None = None, at: Path | None = None
) -> Checklist:
    """Read a shipped checklist by its name, or one of your own by its path, with all that it extends.

    A path is what has a slash or ends in ``.yaml`` or ``.yml``, or names an existing file.

    Args:
        name_or_path: which checklist.
        catalog: what is shipped, and what a checklist may name.
        read: reads the files; from the disk, unless given.
        at: where the file belongs, if it is read from another place (git hands over copies): paths in it count
            from there.

    Raises:
        ChecklistError: there is none of that name, it cannot be read, or something in it is wrong.
    """
    opener = _Opener(catalog, read or read_file)
    opened = opener.open(name_or_path)
    if at is not None:
        opened = replace(opened, path=at, identity=_identity(at))
    source, extends, overrides = opener.layers(opened)
    checklist, problems = resolve(source, catalog, opened.origin, extends=extends, overrides=overrides)
    if checklist is None:
        raise ChecklistError(opened.shown, problems)
    return checklist


def read_text(name_or_path: str, catalog: Catalog) -> str:
    """The text of a checklist that :func:`load_checklist` accepts, with its comments."""
    file = Path(name_or_path) if is_path(name_or_path, catalog) else catalog.checklists[name_or_path]
    return file.read_text(encoding="utf-8-sig")


@dataclass(frozen=True, kw_only=True)
class _Opened:
    """A checklist's content, and where it comes from."""

    content: bytes
    shown: str
    """As messages name it."""
    origin: str
    identity: str
    """The same for the same checklist, however it was named."""
    path: Path | None
    """The file; None for a shipped one."""


def _identity(path: Path) -> str:
    return os.path.realpath(path)


_Layers = tuple[Source, tuple[str, ...], list[Override]]


class _Opener:
    """Opens checklists, and what they extend."""

    def __init__(self, catalog: Catalog, read: Reader) -> None:
        self._catalog = catalog
        self._read = read

    def open(self, name: str, beside: Path | None = None) -> _Opened:
        """Open a checklist by name or path; a relative path counts from the folder of ``beside``, if given."""
        shipped = self._catalog.checklists
        if is_path(name, self._catalog) and not (beside and name in shipped):
            path = Path(os.path.normpath(beside.parent / name)) if beside else Path(name)
            content = self._read(path)
            return _Opened(content=content, shown=str(path), origin=str(path), identity=_identity(path), path=path)
        if name not in shipped:
            known = ", ".join(shipped) or "none"
            message = f"no checklist of that name is shipped{did_you_mean(name, shipped)}"
            hint = f"Shipped are: {known}. For a file of your own give its path, such as ./{name or 'job'}.yaml"
            raise _error(name or "--checklist", message, hint)
        shown = f"{name} (shipped)"
        content = shipped[name].read_bytes()
        return _Opened(content=content, shown=shown, origin="shipped", identity=shown, path=None)

    def layers(self, opened: _Opened, above: tuple[_Opened, ...] = ()) -> _Layers:
        """The checklist laid over those that it extends; their names, and what it says otherwise."""
        try:
            source = read_yaml(opened.content)
        except YamlSourceError as error:
            raise ChecklistError(opened.shown, [error.problem]) from error
        extends = source.data.get("extends") if isinstance(source.data, dict) else None
        if extends is None and not above:
            return source, (), []
        source.name = opened.shown
        refused = refuse_other_schema(source)
        if refused:
            raise ChecklistError(opened.shown, [refused])
        if extends is None:
            return source, (), []
        below = self._below(extends, source, (*above, opened))
        base, names, inherited = self.layers(below, (*above, opened))
        own = list(own_problems(source))
        merged, overrides = lay_over(base, source)
        merged.problems += own
        return merged, (below.shown, *names), [*inherited, *overrides]

    def _below(self, extends: object, source: Source, chain: tuple[_Opened, ...]) -> _Opened:
        """The checklist that the last of the chain extends."""
        opened = chain[-1]

        def refuse(message: str) -> ChecklistError:
            return ChecklistError(opened.shown, [source.problem(("extends",), message)])

        if not isinstance(extends, str) or not extends.strip():
            raise refuse("'extends' names one checklist, by name or path")
        if opened.path is None and is_path(extends, self._catalog):
            raise refuse("a shipped checklist extends shipped ones only, by name")
        try:
            below = self.open(extends, opened.path)
        except ChecklistError as error:
            raise refuse(f"extends {extends!r}: {error}") from error
        identities = [item.identity for item in chain]
        if below.identity in identities:
            circle = chain[identities.index(below.identity) :]
            shown = " -> ".join(item.shown for item in (*circle, below))
            raise refuse(f"checklists extend each other in a circle: {shown}")
        return below


def is_path(text: str, catalog: Catalog) -> bool:
    """Whether a checklist is named by its path."""
    if "/" in text or "\\" in text or text.endswith((".yaml", ".yml")):
        return True
    return bool(text) and text not in catalog.checklists and os.path.isfile(text)  # noqa: PTH113 - it never raises


def read_file(path: Path) -> bytes:
    """Read a checklist from the disk.

    Raises:
        ChecklistError: it is not there or cannot be read.
    """
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


def _error(source: str, message: str, hint: str | None = None) -> ChecklistError:
    return ChecklistError(source, [Problem(line=None, column=None, message=message)], hint=hint)
