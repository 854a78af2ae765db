"""From the given paths to the files to lint."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from kdoctor.errors import UsageError, about_missing_file
from kdoctor.inputs import is_foreign
from kdoctor_lint.script import STDIN

_SUFFIXES = (".py", ".ipynb")


def find_files(paths: Sequence[str]) -> tuple[list[str], list[str]]:
    """The files, each once and in order, and the folders without any.

    A file given by name is included whatever its suffix. Folders are searched for scripts and notebooks, except
    hidden folders, virtual environments and installed packages. Links to folders are not followed. A folder that cannot
    be listed is among the files, so that reading it reports why.

    Raises:
        UsageError: a path does not exist, or is neither a file nor a folder.
    """
    # A mistyped path would be reported as clean or as a broken file.
    wrong = [message for path in dict.fromkeys(paths) if (message := _mistake(path))]
    if wrong:
        raise UsageError("\n".join(wrong), hint="Example: kdoctor lint train.py src/")
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


def _mistake(path: str) -> str | None:
    file = Path(path)
    if path == STDIN or os.path.isfile(path) or os.path.isdir(path):  # noqa: PTH112, PTH113 - they never raise
        return None
    if os.path.islink(path) and not os.path.exists(path):  # noqa: PTH110, PTH114 - they never raise
        return f"{path}: broken link to {file.readlink()}"
    if os.path.exists(path):  # noqa: PTH110 - it never raises
        return f"{path}: not a regular file; to read a pipe, use - and redirect it to stdin"
    near = about_missing_file(file, *(_SUFFIXES if file.suffix else ()))
    return f"{path or repr(path)}: no such file or folder{near}"


def _scripts(folder: str) -> Iterator[str]:
    unlisted: list[str] = []
    for parent, folders, names in os.walk(folder, onerror=lambda error: unlisted.append(str(error.filename))):
        folders[:] = sorted(name for name in folders if not (name.startswith(".") or is_foreign(parent, name)))
        for name in sorted(names):
            if name.endswith(_SUFFIXES) and not name.startswith("."):
                yield str(Path(parent, name))
    yield from unlisted
