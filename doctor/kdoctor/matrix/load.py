"""Finds the matrix files, reads them, and merges them into one matrix.

The entry point ``kdoctor.matrices`` names a package whose ``*.yaml`` files are shipped matrices. A user's file extends
the shipped matrix or replaces it (``extends``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any

from kdoctor.errors import did_you_mean
from kdoctor.inputs import expanded
from kdoctor.matrix.model import Release, VersionMatrix
from kdoctor.matrix.schema import KEYS, NOT_INHERITED, OPTIONAL, MatrixDocument
from kdoctor.matrix.values import numbers, parse_requirement, python_minors
from kdoctor.plugins.installed import shipped_files
from kdoctor.yamldoc.nodes import Node
from kdoctor.yamldoc.problems import DocumentError, Problem
from kdoctor.yamldoc.source import YamlSourceError, read_file, read_yaml
from kdoctor.yamldoc.validation import validate

VARIABLE = "KDOCTOR_MATRIX"
"""The environment variable that names a matrix file if no option does."""

_NOUN = "version matrix"
_SHIPPED = "the shipped version matrix"
_TRUTH = "the shipped table of what distributed Keras does"
_FILES = {_SHIPPED: "version-matrix.yaml", _TRUTH: "keras-truth.yaml"}


class MatrixError(DocumentError):
    """A version matrix cannot be used. Carries every problem that was found."""


def load_matrix(path: str | None = None, environ: Mapping[str, str] | None = None) -> VersionMatrix:
    """The shipped matrix, extended or replaced by the user's file.

    Args:
        path: the value of ``--matrix``; an empty string counts as given.
        environ: where provides ``KDOCTOR_MATRIX`` if ``path`` is None; an empty value counts as unset.

    Raises:
        MatrixError: a file cannot be read or is invalid.
    """
    chosen, shown = path, path or "--matrix"
    if path is None:
        chosen = (environ or {}).get(VARIABLE) or None
        shown = f"{chosen} ({VARIABLE})"
    if chosen is None:
        return shipped_matrix()
    try:
        content = read_file(expanded(chosen), _NOUN)
        extends = read_yaml(content, _NOUN).root.string("extends")
    except YamlSourceError as error:
        raise MatrixError(shown, [error.problem]) from error
    if extends == "shipped":
        return _shipped().read(shown, content).build()
    return loads(content, shown)


@cache
def shipped_matrix() -> VersionMatrix:
    """The shipped matrix, which a process reads once.

    Raises:
        MatrixError: it is missing, so the installation is incomplete.
    """
    return _shipped().build()


def loads(content: bytes, shown: str = "the matrix") -> VersionMatrix:
    """The matrix of one file.

    Raises:
        MatrixError: it is invalid.
    """
    return _Builder().read(shown, content).build()


def _shipped() -> _Builder:
    builder = _Builder()
    for shown in _FILES:
        builder.read(shown, shipped_text(shown))
    return builder


def shipped_text(shown: str = _SHIPPED) -> bytes:
    """The content of the shipped matrix, or of the table of what distributed Keras does.

    Raises:
        MatrixError: it is missing, so the installation is incomplete.
    """
    for file in shipped_files("matrices", _FILES[shown]):
        return file.read_bytes()
    missing = Problem(line=None, column=None, message="not found")
    raise MatrixError(shown, [missing], hint="Reinstall keras-doctor")


class _Builder:
    """Merges files; a row of a later file replaces an earlier one with the same key."""

    def __init__(self) -> None:
        self._files: list[tuple[str, MatrixDocument, Node]] = []
        self._rows: dict[str, dict[str, tuple[Any, Node]]] = {section: {} for section in KEYS}
        self._releases: dict[str, Node] = {}
        """By version, with the values that ``same_as`` inherits."""
        self._gpus: dict[str, Node] = {}
        """By capability, with the models of all files."""

    def read(self, shown: str, content: bytes) -> _Builder:
        """Add a file.

        Raises:
            MatrixError: it is invalid.
        """
        try:
            source = read_yaml(content, _NOUN, shown)
        except YamlSourceError as error:
            raise MatrixError(shown, [error.problem]) from error
        root = source.root
        refused = MatrixDocument.other_schema(root, _NOUN)
        if refused:
            raise MatrixError(shown, [*source.problems, refused])
        problems = [*source.problems, *self._missing_sections(root), *self._inherit(root)]
        self._extend_gpus(root)
        document, invalid = validate(MatrixDocument, root, _NOUN)
        if document is None or problems:
            raise MatrixError(shown, list(dict.fromkeys([*problems, *invalid])))
        problems = list(self._add_rows(document, root))
        if problems:
            raise MatrixError(shown, problems)
        self._files.append((shown, document, root))
        return self

    def _missing_sections(self, root: Node) -> Iterator[Problem]:
        if root.string("extends") in (None, "nothing"):
            for section in ("sources", "registering", *KEYS):
                if section not in OPTIONAL and root.get(section) is None:
                    yield root.problem(f"missing key {section!r}")

    def _inherit(self, root: Node) -> Iterator[Problem]:
        """Give every release the values of the row that it is the same as."""
        for row in root.entries("tensorflow"):
            wanted = row.string("same_as")
            base = self._releases.get(wanted or "")
            if wanted is not None and base is None:
                message = f"no row for TensorFlow {wanted} precedes this one{did_you_mean(wanted, self._releases)}"
                yield row.value["same_as"].problem(message)
            elif base is not None:
                # A row that states its own code describes all of it.
                own = ("ptx_isa", "kernel_gen") if row.value.get("cubins") else ()
                inherited = {
                    key: replace(node, mark=row.mark, key=None)
                    for key, node in base.value.items()
                    if key not in (*NOT_INHERITED, *own)
                }
                row.value = {**inherited, **row.value}
            self._releases[row.string("version") or ""] = row

    def _extend_gpus(self, root: Node) -> None:
        """Add the models of a row to those of the earlier row with its capability, which provides missing keys."""
        for row in root.entries("gpus"):
            base = self._gpus.get(row.string("capability") or "")
            if base is not None:
                inherited = {key: replace(node, mark=row.mark, key=None) for key, node in base.value.items()}
                for key in ("data_center", "models", "arm_models"):
                    own, known = row.get(key), inherited.get(key)
                    if own is not None and known is not None and isinstance(own.value, list):
                        row.value[key] = replace(own, value=[*known.value, *own.value])
                row.value = {**inherited, **row.value}
            self._gpus[row.string("capability") or ""] = row

    def _add_rows(self, document: MatrixDocument, root: Node) -> Iterator[Problem]:
        for section, keys in KEYS.items():
            first: dict[str, Node] = {}
            for index, row in enumerate(getattr(document, section)):
                node = root.at((section, index))
                stated = {key: getattr(row, key) for key in keys if getattr(row, key) is not None}
                name = ", ".join(f"{key} {value}" for key, value in stated.items())
                if name in first:
                    yield node.problem(f"duplicate row with {name} (first on line {first[name].mark.line})")
                first[name] = node
                self._rows[section][name] = (row, node)

    def build(self) -> VersionMatrix:
        """The matrix.

        Raises:
            MatrixError: the rows contradict each other.
        """
        # The table of what distributed Keras does is a part of the shipped matrix, with its date.
        files = [file for file in self._files if file[0] != _TRUTH]
        _, last, root = files[-1]
        stated = [document.registering for _, document, _ in self._files if document.registering]
        rows = {section: tuple(row for row, _ in found.values()) for section, found in self._rows.items()}
        matrix = VersionMatrix(
            name=" and ".join(shown.removeprefix("the ") for shown, _, _ in files),
            updated=max(document.updated for _, document, _ in files),
            platform=last.platform,
            releases=tuple(sorted(rows["tensorflow"], key=lambda row: row.key)),
            jax=tuple(sorted(rows["jax"], key=lambda row: (row.key, row.cuda))),
            cuda_majors=tuple(sorted(rows["cuda_majors"], key=lambda row: row.major)),
            cuda_releases=tuple(sorted(rows["cuda_releases"], key=lambda row: numbers(row.release))),
            earlier=rows["earlier"],
            ptx_versions=rows["ptx_versions"],
            cudnn=rows["cudnn"],
            gpus=tuple(sorted(rows["gpus"], key=lambda row: row.number)),
            platforms=rows["platforms"],
            forward_compatibility=tuple(sorted(rows["forward_compatibility"], key=lambda row: numbers(row.cuda))),
            libraries=rows["libraries"],
            registering=stated[-1] if stated else (),
            features={row.feature: row for row in rows["features"]},
            keras_releases=rows["keras_releases"],
            keras_features=rows["keras_features"],
            known_bad=rows["known_bad"],
            sources={name: text for _, document, _ in self._files for name, text in document.sources.items()},
        )
        problems = [
            *self._about_sources(matrix),
            *self._about_features(matrix),
            *self._about_releases(matrix),
            *self._about_drivers(matrix),
            *self._about_models(),
        ]
        if len({document.platform for _, document, _ in self._files}) > 1:
            message = f"platform is {last.platform!r}, but the shipped matrix has {self._files[0][1].platform!r}"
            problems.append(root.at(("platform",)).problem(message))
        if problems:
            raise MatrixError(self._files[-1][0], problems)
        return matrix

    def _about_sources(self, matrix: VersionMatrix) -> Iterator[Problem]:
        for rows in self._rows.values():
            for row, node in rows.values():
                for source in row.source:
                    if matrix.citation(source) is None:
                        meant = did_you_mean(source, matrix.sources)
                        yield node.at(("source",)).problem(f"source {source!r} is not listed in 'sources'{meant}")

    def _about_features(self, matrix: VersionMatrix) -> Iterator[Problem]:
        first: dict[tuple[str, ...], Node] = {}
        for row, node in self._rows["keras_features"].values():
            if row.feature not in matrix.features:
                meant = did_you_mean(row.feature, matrix.features)
                yield node.at(("feature",)).problem(f"feature {row.feature!r} is not listed in 'features'{meant}")
            for release in row.releases:
                other = first.setdefault((row.feature, row.package, release, node.mark.file), node)
                if other is not node:
                    message = f"{row.package} {release} already has a result for {row.feature!r}"
                    yield node.at(("releases",)).problem(f"{message} (line {other.mark.line})")

    def _about_releases(self, matrix: VersionMatrix) -> Iterator[Problem]:
        for release, node in self._rows["tensorflow"].values():
            for key, message in _contradictions(release, matrix):
                yield node.at((key,)).problem(f"TensorFlow {release.version}: {message}")

    def _about_drivers(self, matrix: VersionMatrix) -> Iterator[Problem]:
        for row, node in self._rows["cuda_releases"].values():
            major = numbers(row.release)[0]
            if f"major {major}" not in self._rows["cuda_majors"]:
                yield node.problem(f"CUDA {row.release}: 'cuda_majors' has no row for CUDA {major}")
                continue
            floor, stated = self._rows["cuda_majors"][f"major {major}"]
            # A file may raise or lower the floor of shipped releases.
            is_override = stated.mark.file != node.mark.file == self._files[0][0]
            if row.driver and numbers(row.driver) < numbers(floor.oldest_driver) and not is_override:
                message = f"driver {row.driver} is older than CUDA {major} needs ({floor.oldest_driver}, 'cuda_majors')"
                yield node.at(("driver",)).problem(message)
        for older, newer in pairwise(matrix.cuda_majors):
            if numbers(older.oldest_driver) >= numbers(newer.oldest_driver):
                _, node = self._rows["cuda_majors"][f"major {newer.major}"]
                message = (
                    f"CUDA {newer.major} needs driver {newer.oldest_driver}, which is not newer than "
                    f"{older.oldest_driver} for CUDA {older.major}"
                )
                yield node.at(("oldest_driver",)).problem(message)

    def _about_models(self) -> Iterator[Problem]:
        for row, node in self._rows["gpus"].values():
            if not row.names:
                yield node.problem("'models' or 'arm_models' is required")


def _contradictions(release: Release, matrix: VersionMatrix) -> Iterator[tuple[str, str]]:
    """What is inconsistent in a release's row: the key, and the message."""
    major = numbers(release.cuda)[0]
    if matrix.oldest_driver(release.cuda) is None:
        yield "cuda", f"'cuda_majors' has no row for CUDA {release.cuda}"
    for kernels in release.kernels:
        if matrix.ptx_driver(kernels, release.cuda) is None:
            source = f"PTX {kernels.ptx_isa} ('ptx_versions')" if kernels.ptx_isa else f"CUDA {release.cuda}"
            yield "cuda", f"'cuda_releases' has no driver for {source}"
    if not python_minors(release.python):
        yield "python", f"no Python version matches {release.python!r}"
    for line in release.and_cuda or ():
        package = parse_requirement(line).name
        if package.startswith("nvidia-") and not package.endswith(f"-cu{major}"):
            yield "and_cuda", f"built with CUDA {major}, but [and-cuda] requires {package}"
    if release.and_cuda is not None and not release.runpath:
        yield "runpath", "[and-cuda] installs libraries, but 'runpath' has no folder for them"
