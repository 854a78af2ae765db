"""Finds the matrix files, reads them, and makes one matrix of them.

The shipped matrix comes by the entry point ``kdoctor.matrices``, as the checklists come by theirs: a package, whose
``*.yaml`` are matrices. A file of the user's own extends it or stands alone (``extends``).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from importlib import metadata, resources
from itertools import pairwise
from pathlib import Path as FilePath
from typing import Any

import yaml

from kdoctor.errors import did_you_mean
from kdoctor.matrix.document import Document, Row, cited, read_document
from kdoctor.matrix.fields import Mistakes, Path
from kdoctor.matrix.model import Release, VersionMatrix, numbers, parse_requirement, python_minors
from kdoctor.matrix.rows import SECTIONS, read_release
from kdoctor.yamldoc import DocumentError, Problem, YamlSourceError, read_yaml

ENTRY_POINTS = "kdoctor.matrices"
"""The group of entry points that bring packages with matrices."""

VARIABLE = "KDOCTOR_MATRIX"
"""The environment variable that names a matrix file, where no option does."""

_NOUN = "version matrix"


class MatrixError(DocumentError):
    """A version matrix cannot be used. It carries every problem that was found."""


def load_matrix(path: str | None = None, environ: Mapping[str, str] | None = None) -> VersionMatrix:
    """The shipped matrix, with the file of the user's own over it.

    Args:
        path: the value of ``--matrix``; an empty text counts as given.
        environ: where ``KDOCTOR_MATRIX`` is looked up if there is no path; an empty value counts as unset.

    Raises:
        MatrixError: a file cannot be read, or something in it is wrong.
    """
    variable = (environ or {}).get(VARIABLE) or None
    chosen, shown = (path, path) if path is not None else (variable, f"{variable} ({VARIABLE})")
    if chosen is None:
        return _Builder([_shipped()]).build()
    own = _File(shown or "--matrix", _read(chosen, shown or "--matrix"))
    if own.document.extends == "nothing":
        return _Builder([own]).build()
    return _Builder([_shipped(), own]).build()


def loads(content: bytes, shown: str = "the matrix") -> VersionMatrix:
    """One file's matrix, which must stand alone.

    Raises:
        MatrixError: something in it is wrong.
    """
    return _Builder([_File(shown, content)]).build()


def shipped_text() -> bytes:
    """The shipped matrix as it is written.

    Raises:
        MatrixError: it is missing, so kdoctor is not wholly installed.
    """
    for entry in metadata.entry_points(group=ENTRY_POINTS):
        for file in resources.files(entry.load()).iterdir():
            if file.name.endswith(".yaml"):
                return file.read_bytes()
    raise _error("the shipped version matrix", "is missing", "Install keras-doctor anew.")


class _File:
    """One file: its document, and where its values stand, which is computed only to tell a mistake."""

    def __init__(self, shown: str, content: bytes, *, trusted: bool = False) -> None:
        self.shown, self.content = shown, content
        mistakes = Mistakes()
        # The plain loader forgets places, duplicate keys and aliases. It is many times as fast, and the shipped file
        # is held against the strict one by a test.
        data = _fast(content) if trusted else self._strict(mistakes)
        document = read_document(data, mistakes)
        if document is None:
            raise self.error(mistakes)
        self.document: Document = document
        self.mistakes = mistakes

    def _strict(self, mistakes: Mistakes) -> Any:
        try:
            source = read_yaml(self.content, _NOUN)
        except YamlSourceError as error:
            raise MatrixError(self.shown, [error.problem]) from error
        if source.problems:
            read_document(source.data, mistakes)
            raise MatrixError(self.shown, [*source.problems, *self.error(mistakes).problems])
        return source.data

    def error(self, mistakes: Mistakes) -> MatrixError:
        """The mistakes with their lines and columns."""
        source = read_yaml(self.content, _NOUN)
        problems = [source.problem(path, message, at_key=at_key) for path, message, at_key in mistakes.found]
        return MatrixError(self.shown, problems)


def _fast(content: bytes) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return yaml.load(content, Loader=loader)  # noqa: S506 - both are safe loaders


def _shipped() -> _File:
    return _File("the shipped version matrix", shipped_text(), trusted=True)


def _read(path: str, shown: str) -> bytes:
    file = FilePath(path).expanduser() if path.startswith("~") else FilePath(path)
    try:
        if os.path.exists(file) and not os.path.isfile(file):  # noqa: PTH110, PTH113 - they never raise
            raise _error(shown, "this is no regular file, so no version matrix")
        return file.read_bytes()
    except FileNotFoundError as error:
        near = [item.name for item in file.parent.glob("*.y*ml")] if file.parent.is_dir() else []
        raise _error(shown, f"there is no such file{did_you_mean(file.name, near)}") from error
    except (OSError, ValueError) as error:
        words = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise _error(shown, f"cannot be read: {words}") from error


class _Builder:
    """One matrix of several files; a later file's row takes the place of an earlier one with the same key."""

    def __init__(self, files: list[_File]) -> None:
        self._files = files
        self._mistakes = {file.shown: file.mistakes for file in files}
        self._sources = {name: text for file in files for name, text in file.document.sources.items()}
        self._rows: dict[str, dict[str, tuple[_File, Row]]] = {section: {} for section in SECTIONS}

    def build(self) -> VersionMatrix:
        """The matrix.

        Raises:
            MatrixError: the files are wrong, or contradict themselves or each other.
        """
        known: dict[str, Mapping[str, Any]] = {}
        for file in self._files:
            for section in SECTIONS:
                for key, row in file.document.sections[section].items():
                    read = replace(row, value=self._release(row, file, known)) if section == "tensorflow" else row
                    self._rows[section][key] = (file, read)
        self._raise()
        matrix = self._matrix()
        self._contradictions(matrix)
        self._raise()
        return matrix

    def _wrong(self, file: _File, path: Path, message: str) -> None:
        self._mistakes[file.shown].add(path, message)

    def _raise(self) -> None:
        for file in self._files:
            if self._mistakes[file.shown].found:
                raise file.error(self._mistakes[file.shown])

    def _release(self, row: Row, file: _File, known: dict[str, Mapping[str, Any]]) -> Release:
        """A release; one that builds on another takes what it does not have from the rows before it."""
        raw: Mapping[str, Any] = row.value
        wanted = raw.get("same_as")
        base: Mapping[str, Any] = {}
        if wanted is not None:
            base = known.get(str(wanted), {})
            if not base:
                message = f"same_as: no TensorFlow {wanted} stands before this row{did_you_mean(str(wanted), known)}"
                self._wrong(file, (*row.path, "same_as"), message)
        release = read_release(raw, base, row.path, self._mistakes[file.shown])
        known[release.version] = {**base, **raw}
        return release

    def _values(self, section: str) -> tuple[Any, ...]:
        return tuple(row.value for _, row in self._rows[section].values())

    def _matrix(self) -> VersionMatrix:
        last = self._files[-1].document
        stated = [file.document.registering for file in self._files if file.document.registering]
        return VersionMatrix(
            name=" and ".join(file.shown.removeprefix("the ") for file in self._files),
            updated=last.updated,
            platform=last.platform,
            releases=tuple(sorted(self._values("tensorflow"), key=lambda row: row.key)),
            cuda_majors=tuple(sorted(self._values("cuda_majors"), key=lambda row: row.major)),
            cuda_releases=tuple(sorted(self._values("cuda_releases"), key=lambda row: numbers(row.release))),
            cudnn=self._values("cudnn"),
            gpus=tuple(sorted(self._values("gpus"), key=lambda row: row.number)),
            libraries=self._values("libraries"),
            registering=stated[-1] if stated else (),
            keras=self._values("keras"),
            known_bad=self._values("known_bad"),
            sources=self._sources,
        )

    def _contradictions(self, matrix: VersionMatrix) -> None:
        """Note what the rows say against each other, and what they name that is not there."""
        if len({file.document.platform for file in self._files}) > 1:
            self._wrong(self._files[-1], ("platform",), "the platform is not that of the matrix that this one extends")
        for rows in self._rows.values():
            for file, row in rows.values():
                for source in row.value.source:
                    if cited(source, matrix.sources) is None:
                        meant = did_you_mean(source, matrix.sources)
                        self._wrong(
                            file, (*row.path, "source"), f"the source {source!r} is not listed in 'sources'{meant}"
                        )
        for file, row in self._rows["tensorflow"].values():
            for key, message in _about_release(row.value, matrix):
                self._wrong(file, (*row.path, key), message)
        self._about_drivers(matrix)
        self._about_models()

    def _about_drivers(self, matrix: VersionMatrix) -> None:
        for file, row in self._rows["cuda_releases"].values():
            major = numbers(row.value.release)[0]
            if f"major {major}" not in self._rows["cuda_majors"]:
                self._wrong(file, row.path, f"CUDA {row.value.release}: 'cuda_majors' does not know this major")
                continue
            stated, floor = self._rows["cuda_majors"][f"major {major}"]
            own_policy = stated is not file and file is self._files[0]
            least = floor.value.oldest_driver
            if row.value.driver and numbers(row.value.driver) < numbers(least) and not own_policy:
                message = f"driver {row.value.driver} is older than its major needs ({least}, 'cuda_majors')"
                self._wrong(file, (*row.path, "driver"), message)
        majors = matrix.cuda_majors
        for older, newer in pairwise(majors):
            if numbers(older.oldest_driver) >= numbers(newer.oldest_driver):
                file, row = self._rows["cuda_majors"][f"major {newer.major}"]
                message = f"CUDA {newer.major} needs no newer driver than CUDA {older.major}: one of the two is wrong"
                self._wrong(file, (*row.path, "oldest_driver"), message)

    def _about_models(self) -> None:
        seen: dict[str, str] = {}
        for file, row in self._rows["gpus"].values():
            for model in (*row.value.models, *row.value.arm_models):
                other = seen.setdefault(model.lower(), row.value.capability)
                if other != row.value.capability:
                    self._wrong(file, row.path, f"the model {model!r} has compute capability {other}, too: keep one")


def _about_release(release: Release, matrix: VersionMatrix) -> list[tuple[str, str]]:
    """What is wrong with a release's row beside the others: the key, and the message."""
    found: list[tuple[str, str]] = []
    name = f"TensorFlow {release.version}"
    if matrix.oldest_driver(release.cuda) is None:
        found.append(("cuda", f"{name}: 'cuda_majors' does not know CUDA {release.cuda}"))
    if matrix.ptx_drivers(release.cuda) is None:
        found.append(("cuda", f"{name}: 'cuda_releases' has no driver for CUDA {release.cuda}"))
    if not python_minors(release.python):
        found.append(("python", f"{name}: no Python version meets {release.python!r}"))
    major = numbers(release.cuda)[0]
    for line in release.and_cuda or ():
        package = parse_requirement(line).name
        if package.startswith("nvidia-") and not package.endswith(f"-cu{major}"):
            found.append(("and_cuda", f"{name} was built against CUDA {major}, but asks for {package}"))
    if release.and_cuda is not None and not release.runpath:
        found.append(("runpath", f"{name}: it has [and-cuda] libraries, but 'runpath' names no folder for them"))
    return found


def _error(shown: str, message: str, hint: str | None = None) -> MatrixError:
    return MatrixError(shown, [Problem(line=None, column=None, message=message)], hint=hint)
