"""Loads a checklist by name or path, with everything that it extends."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from kdoctor.catalog.load import Catalog
from kdoctor.checklist.extends import Override, lay_over, missing_keys
from kdoctor.checklist.problems import ChecklistError, Problem
from kdoctor.checklist.resolve import Checklist
from kdoctor.checklist.schema import ChecklistDocument
from kdoctor.checklist.validate import NOUN, validate_checklist
from kdoctor.errors import did_you_mean
from kdoctor.records import record
from kdoctor.yamldoc.source import Source, YamlSourceError, read_yaml
from kdoctor.yamldoc.source import read_file as read_document_file

_DEEPEST = 20
"""The longest chain of checklists that extend each other."""


class Reader(Protocol):
    """Reads the checklists that are named by path: from the disk, or from a revision of a repository."""

    def __call__(self, path: Path) -> bytes:
        """The content of the file.

        Raises:
            ChecklistError: it does not exist or cannot be read.
        """
        ...


def load_checklist(
    name_or_path: str, catalog: Catalog, *, read: Reader | None = None, at: Path | None = None
) -> Checklist:
    """Load a shipped checklist by name, or a file by path, with all that it extends.

    A path contains a slash, ends in ``.yaml`` or ``.yml``, or names an existing file.

    Args:
        name_or_path: which checklist.
        catalog: the shipped checklists, and what a checklist may name.
        read: reads the files; from the disk by default.
        at: the path of the file in its repository, if it is a copy (as git passes them). Paths in it count from there.

    Raises:
        ChecklistError: it does not exist, cannot be read, or is invalid.
    """
    opener = _Opener(catalog, read or read_file)
    opened = opener.open(name_or_path)
    if at is not None:
        opened = replace(opened, path=at, identity=_identity(at))
    source, extends, overrides = opener.layers(opened)
    checklist, problems = validate_checklist(source, catalog, opened.origin, extends=extends, overrides=overrides)
    if checklist is None:
        raise ChecklistError(opened.shown, problems)
    return checklist


def read_text(name_or_path: str, catalog: Catalog) -> str:
    """The text of a checklist that :func:`load_checklist` accepts, with its comments."""
    if is_path(name_or_path, catalog):
        return Path(name_or_path).read_text(encoding="utf-8-sig")
    return catalog.shipped_checklist(name_or_path).decode("utf-8-sig")


@record
class _Opened:
    """The content of a checklist, and where it is from."""

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


class _Opener:
    """Opens checklists, and what they extend."""

    def __init__(self, catalog: Catalog, read: Reader) -> None:
        self._catalog = catalog
        self._read = read

    def open(self, name: str, parent: Path | None = None) -> _Opened:
        """Open a checklist by name or path; a relative path counts from the folder of ``parent``, if given."""
        shipped = self._catalog.checklists
        if is_path(name, self._catalog) and not (parent and name in shipped):
            path = Path(os.path.normpath(parent.parent / name)) if parent else Path(name)
            content = self._read(path)
            return _Opened(content=content, shown=str(path), origin=str(path), identity=_identity(path), path=path)
        if name not in shipped and name and os.path.isdir(name):  # noqa: PTH112 - it never raises
            raise _error(name, f"a directory, expected a {NOUN}")
        if name not in shipped:
            message = f"no shipped checklist has that name{did_you_mean(name, shipped)}"
            hint = (
                f"Available: {', '.join(shipped) or 'none'}. For a file, give its path, such as ./{name or 'job'}.yaml"
            )
            raise _error(name or "--checklist", message, hint)
        shown = f"{name} (shipped)"
        content = self._catalog.shipped_checklist(name)
        return _Opened(content=content, shown=shown, origin="shipped", identity=shown, path=None)

    def layers(
        self, opened: _Opened, above: tuple[_Opened, ...] = ()
    ) -> tuple[Source, tuple[str, ...], list[Override]]:
        """The checklist merged with those that it extends; their names, and what it overrides."""
        try:
            source = read_yaml(opened.content, NOUN, opened.shown)
        except YamlSourceError as error:
            raise ChecklistError(opened.shown, [error.problem]) from error
        extends = source.root.get("extends")
        refused = ChecklistDocument.other_schema(source.root, NOUN)
        if refused and (extends is not None or above):
            raise ChecklistError(opened.shown, [refused])
        if extends is None or extends.value is None:
            return source, (), []
        below = self._below(source, (*above, opened))
        base, names, inherited = self.layers(below, (*above, opened))
        root, overrides, problems = lay_over(base.root, source.root)
        problems = [*base.problems, *source.problems, *problems, *missing_keys(source.root)]
        return Source(root=root, problems=problems), (below.shown, *names), [*inherited, *overrides]

    def _below(self, source: Source, chain: tuple[_Opened, ...]) -> _Opened:
        """The checklist that the last of the chain extends."""
        opened, node = chain[-1], source.root.value["extends"]
        if len(chain) > _DEEPEST:
            raise ChecklistError(opened.shown, [node.problem(f"'extends' is more than {_DEEPEST} checklists deep")])
        extends = node.value

        def refuse(message: str) -> ChecklistError:
            return ChecklistError(opened.shown, [node.problem(message)])

        if not isinstance(extends, str) or not extends.strip():
            raise refuse("'extends' must be one name or path")
        if opened.path is None and is_path(extends, self._catalog):
            raise refuse("a shipped checklist can only extend another shipped one, by name")
        try:
            below = self.open(extends, opened.path)
        except ChecklistError as error:
            raise refuse(f"extends {extends!r}: {error}") from error
        identities = [item.identity for item in chain]
        if below.identity in identities:
            circle = chain[identities.index(below.identity) :]
            shown = " -> ".join(item.shown for item in (*circle, below))
            raise refuse(f"circular 'extends': {shown}")
        return below


def is_path(text: str, catalog: Catalog) -> bool:
    """Whether a checklist is named by its path."""
    if "/" in text or "\\" in text or text.endswith((".yaml", ".yml")):
        return True
    return bool(text) and text not in catalog.checklists and os.path.isfile(text)  # noqa: PTH113 - it never raises


def read_file(path: Path) -> bytes:
    """Read a checklist from the disk.

    Raises:
        ChecklistError: it does not exist or cannot be read.
    """
    try:
        return read_document_file(path, NOUN)
    except YamlSourceError as error:
        raise ChecklistError(str(path), [error.problem]) from error


def _error(source: str, message: str, hint: str | None = None) -> ChecklistError:
    return ChecklistError(source, [Problem(line=None, column=None, message=message)], hint=hint)
