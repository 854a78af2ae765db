"""The external diff driver for git: two versions of a checklist or a lock, either of which may be missing."""

from dataclasses import replace
from pathlib import Path

from kdoctor.catalog.load import Catalog
from kdoctor.diff.compare import compare, compare_locks
from kdoctor.diff.model import Comparison
from kdoctor.diff.sources import from_files
from kdoctor.lock.store import is_lock, read_lock

_NONE = Path("/dev/null")


def compare_as_git_asks(path: str, old: Path, new: Path, catalog: Catalog) -> Comparison | str:
    """The comparison; for a checklist that was added or removed, a line of text.

    Args:
        path: the path in the repository; paths in the checklist count from there.
        old: the older file, or /dev/null.
        new: the newer file, or /dev/null.
        catalog: what a checklist may name.

    Raises:
        UsageError: a version cannot be read.
    """
    files = [file for file in (old, new) if file != _NONE]
    if any(map(is_lock, files)):
        before, after = (None if file == _NONE else read_lock(file) for file in (old, new))
        return compare_locks(before, after, path, path)
    if len(files) == 1:
        return f"{path}: checklist {'added' if old == _NONE else 'removed'}\n"
    at = Path(path)
    left, right = (from_files(f"{file.parent}/{file.name}", catalog, at=at) for file in files)
    # git passes temporary copies.
    return compare(replace(left, shown=f"a/{path}"), replace(right, shown=f"b/{path}"))
