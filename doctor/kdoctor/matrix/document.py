"""A version matrix's document into rows, strictly: what may stand in the file, and what is wrong with it.

It is written out by hand instead of with pydantic, because ``kdoctor matrix`` must answer as fast as ``--help``.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

from packaging.requirements import InvalidRequirement
from packaging.specifiers import InvalidSpecifier
from packaging.version import InvalidVersion, Version

from kdoctor.errors import did_you_mean
from kdoctor.matrix.model import (
    EFFECTS,
    CudaMajor,
    CudaRelease,
    CudnnSupport,
    GpuKind,
    KerasBehaviour,
    KnownBad,
    Libraries,
    Linkage,
    Nccl,
    Release,
    Sources,
    numbers,
    parse_requirement,
    specifier,
)

SCHEMA = "kdoctor/version-matrix/v1"
"""The only version that this kdoctor knows."""

EXTENDS = ("shipped", "nothing")
"""What a matrix of one's own may extend: the shipped one, whose rows it adds to and replaces, or nothing."""

Path = tuple[str | int, ...]

_SCHEMA = re.compile(r"kdoctor/version-matrix/v(\d+)")
_SHORT_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_CAPABILITY = re.compile(r"\d{1,2}\.\d")


@dataclass(kw_only=True)
class Mistakes:
    """What is wrong with a document, by the path of the value."""

    found: list[tuple[Path, str, bool]] = field(default_factory=list)
    """Path, message, and whether it is about the key rather than the value."""

    def add(self, path: Path, message: str, *, at_key: bool = False) -> None:
        """Note one."""
        self.found.append((path, message, at_key))


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row as it was read, with its key and its place."""

    path: Path
    value: Any


@dataclass(frozen=True, kw_only=True)
class Document:
    """The rows of one file, by section and key."""

    extends: str
    updated: str
    platform: str
    sections: Mapping[str, Mapping[str, Row]]
    sources: Mapping[str, str]
    registering: tuple[str, ...]


class _Mapping:
    """A mapping of the document, of which every key must be known."""

    def __init__(self, value: Any, path: Path, mistakes: Mistakes) -> None:
        self.path, self.mistakes = path, mistakes
        self._asked: list[str] = []
        self.data: dict[str, Any] = {}
        if isinstance(value, dict):
            self.data = value
        else:
            self.wrong(None, f"expected a mapping, not {_kind(value)}")

    def wrong(self, key: str | None, message: str) -> None:
        self.mistakes.add(self.path if key is None else (*self.path, key), message)

    def take(self, key: str, *, needed: bool = True) -> Any:
        self._asked.append(key)
        value = self.data.get(key)
        if value is None and needed:
            self.wrong(key if key in self.data else None, f"{key!r} is {'empty' if key in self.data else 'missing'}")
        return value

    def has(self, key: str) -> bool:
        return key in self.data

    def close(self) -> None:
        """Say which keys nobody asked for."""
        for key in self.data:
            if key not in self._asked:
                message = f"{key!r} is no key here{did_you_mean(str(key), self._asked)}"
                self.mistakes.add((*self.path, key), message, at_key=True)

    def text(self, key: str, check: Callable[[str], object] | None = None) -> str:
        return self.maybe_text(key, check, needed=True) or ""

    def maybe_text(self, key: str, check: Callable[[str], object] | None = None, *, needed: bool = False) -> str | None:
        value = self.take(key, needed=needed)
        if value is None:
            return None
        return _text(value, key, (*self.path, key), self.mistakes, check)

    def texts(self, key: str, check: Callable[[str], object] | None = None, *, needed: bool = True) -> tuple[str, ...]:
        value = self.take(key, needed=needed)
        items = [value] if isinstance(value, str) else value
        if items is None:
            return ()
        if not isinstance(items, list):
            self.wrong(key, f"{key!r}: expected a list, not {_kind(value)}")
            return ()
        path = (*self.path, key)
        read = (_text(item, key, (*path, at), self.mistakes, check) for at, item in enumerate(items))
        return tuple(item for item in read if item is not None)

    def pairs(self, key: str, check: Callable[[str], object] | None = None, *, needed: bool = True) -> dict[str, str]:
        value = self.take(key, needed=needed)
        if value is None:
            return {}
        if not isinstance(value, dict):
            self.wrong(key, f"{key!r}: expected a mapping, not {_kind(value)}")
            return {}
        path = (*self.path, key)
        return {name: _text(item, name, (*path, name), self.mistakes, check) or "" for name, item in value.items()}

    def number(self, key: str, *, needed: bool = True) -> int | None:
        value = self.take(key, needed=needed)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value <= 0):
            self.wrong(key, f"{key!r}: expected a whole number above 0, not {_kind(value)}")
            return None
        return value

    def architectures(self, key: str) -> tuple[int, ...]:
        """Rising numbers such as 80."""
        value = self.take(key)
        fits = isinstance(value, list) and all(isinstance(item, int) and 10 <= item < 1000 for item in value)  # noqa: PLR2004
        if value is not None and not (fits and value == sorted(set(value))):
            self.wrong(key, f"{key!r}: expected rising architectures such as [70, 80, 90], not {_kind(value)}")
            return ()
        return tuple(value or ())

    def choice(self, key: str, known: tuple[str, ...], *, needed: bool = True) -> Any:
        value = self.maybe_text(key, needed=needed)
        if value and value not in known:
            expected = f"expected one of {', '.join(known)}{did_you_mean(value, known)}"
            self.wrong(key, f"{key!r} is {value!r}; {expected}")
        return value


def read_document(data: Any, mistakes: Mistakes) -> Document | None:
    """The rows of a document, with the mistakes noted; None where it is of another schema."""
    top = _Mapping(data, (), mistakes)
    if not isinstance(data, dict) or not _of_this_schema(top):
        return None
    extends = top.choice("extends", EXTENDS, needed=False) or "nothing"
    document = Document(
        extends=extends,
        updated=top.text("updated", dt.date.fromisoformat),
        platform=top.text("platform"),
        sources=top.pairs("sources", needed=extends == "nothing"),
        registering=top.texts("registering", needed=extends == "nothing"),
        sections={name: dict(_rows(top, name, extends, mistakes)) for name in SECTIONS},
    )
    top.close()
    return document


def _of_this_schema(top: _Mapping) -> bool:
    schema = top.maybe_text("schema", needed=True)
    if schema is None or schema == SCHEMA:
        return schema is not None
    found = _SCHEMA.fullmatch(schema)
    if found and int(found[1]) > 1:
        top.wrong("schema", f"{schema} is newer than this kdoctor knows ({SCHEMA}): upgrade keras-doctor")
    else:
        top.wrong("schema", f"'schema' is {schema!r}; expected {SCHEMA}{did_you_mean(schema, [SCHEMA])}")
    return False


def _rows(top: _Mapping, name: str, extends: str, mistakes: Mistakes) -> Iterator[tuple[str, Row]]:
    read, key_of = SECTIONS[name]
    value = top.take(name, needed=extends == "nothing")
    if value is not None and not isinstance(value, list):
        top.wrong(name, f"{name!r}: expected a list of rows, not {_kind(value)}")
        return
    seen: set[str] = set()
    for at, item in enumerate(value or ()):
        path = (name, at)
        fields = _Mapping(item, path, mistakes)
        key = key_of(fields, item if isinstance(item, dict) else {})
        if key in seen:
            mistakes.add(path, f"{name}: {key} stands here twice: keep one")
        seen.add(key)
        yield key, Row(path=path, value=read(fields))


_OWN = ("version", "same_as", "note", "verified", "source")
"""Keys of a release that a row with ``same_as`` does not take from the other."""


def read_release(row: Mapping[str, Any], base: Mapping[str, Any], path: Path, mistakes: Mistakes) -> Release:
    """A row of ``tensorflow``, whose missing keys are those of the row that it is the same as."""
    inherited = {key: value for key, value in base.items() if key not in _OWN}
    fields = _Mapping({**inherited, **row}, path, mistakes)
    release = Release(
        version=fields.text("version", Version),
        distribution=fields.maybe_text("distribution") or "tensorflow",
        python=fields.text("python", specifier),
        requires=fields.texts("requires", parse_requirement),
        and_cuda=fields.texts("and_cuda", parse_requirement, needed=False) or None,
        cuda=fields.text("cuda", numbers),
        cudnn=fields.maybe_text("cudnn", numbers),
        cubins=fields.architectures("cubins"),
        ptx=fields.architectures("ptx"),
        nccl=_nccl(fields, "nccl"),
        glibc=fields.text("glibc", numbers),
        runpath=fields.texts("runpath"),
        note=fields.maybe_text("note"),
        inferred_from=fields.maybe_text("same_as", Version),
        verified=fields.maybe_text("verified"),
        source=_source(fields),
    )
    fields.close()
    return release


def _raw(fields: _Mapping) -> Mapping[str, Any]:
    """A release as it stands: it is read when the rows are known that it may build on."""
    return fields.data


def _nccl(fields: _Mapping, key: str) -> Nccl:
    part = _Mapping(fields.take(key), (*fields.path, key), fields.mistakes)
    nccl = Nccl(
        linkage=part.choice("linkage", get_args(Linkage)),
        version=part.maybe_text("version"),
        basis=part.text("basis"),
    )
    part.close()
    return nccl


def _cuda_major(fields: _Mapping) -> CudaMajor:
    row = CudaMajor(
        major=fields.number("major") or 0,
        oldest_driver=fields.text("oldest_driver", numbers),
        source=_source(fields),
    )
    fields.close()
    return row


def _cuda_release(fields: _Mapping) -> CudaRelease:
    row = CudaRelease(
        release=fields.text("release", numbers),
        driver=fields.maybe_text("driver", numbers),
        source=_source(fields),
    )
    fields.close()
    return row


def _cudnn(fields: _Mapping) -> CudnnSupport:
    row = CudnnSupport(
        versions=fields.text("versions", specifier),
        cuda=fields.number("cuda") or 0,
        capabilities=fields.text("capabilities", specifier),
        oldest_driver=fields.maybe_text("oldest_driver", numbers),
        source=_source(fields),
    )
    fields.close()
    return row


def _gpu(fields: _Mapping) -> GpuKind:
    row = GpuKind(
        capability=fields.text("capability", _capability),
        architecture=fields.text("architecture"),
        models=fields.texts("models", needed=False),
        arm_models=fields.texts("arm_models", needed=False),
        oldest_driver=fields.maybe_text("oldest_driver", numbers),
        last_branch=fields.number("last_branch", needed=False),
        source=_source(fields),
    )
    if not row.models and not row.arm_models:
        fields.wrong(None, "names no model: 'models' or 'arm_models' is missing")
    fields.close()
    return row


def _libraries(fields: _Mapping) -> Libraries:
    row = Libraries(
        cuda=fields.number("cuda", needed=False),
        cudnn=fields.number("cudnn", needed=False),
        nccl=fields.choice("nccl", get_args(Linkage), needed=False),
        sonames=fields.pairs("sonames"),
        source=_source(fields),
    )
    fields.close()
    return row


def _keras(fields: _Mapping) -> KerasBehaviour:
    row = KerasBehaviour(
        versions=fields.text("versions", specifier),
        weights=fields.choice("weights", ("right", "wrong")),
        reported=fields.choice("reported", ("right", "wrong")),
        ragged=fields.text("ragged"),
        empty_replica=fields.text("empty_replica"),
        source=_source(fields),
    )
    fields.close()
    return row


def _known_bad(fields: _Mapping) -> KnownBad:
    row = KnownBad(
        id=fields.text("id"),
        when=fields.pairs("when", specifier),
        job=fields.maybe_text("job"),
        effect=fields.choice("effect", EFFECTS),
        symptom=fields.text("symptom"),
        ended_by=fields.pairs("ended_by", specifier, needed=False),
        install=fields.texts("install", parse_requirement, needed=False),
        fix=fields.text("fix"),
        source=_source(fields),
    )
    fields.close()
    return row


def _source(fields: _Mapping) -> Sources:
    sources = fields.texts("source")
    if fields.has("source") and not all(text.strip() for text in sources):
        fields.wrong("source", "a source is empty")
    return sources


def _key(*names: str) -> Callable[[_Mapping, dict[str, Any]], str]:
    def key_of(_: _Mapping, item: dict[str, Any]) -> str:
        return ", ".join(f"{name} {item[name]}" for name in names if item.get(name) is not None)

    return key_of


def _key_of_known_bad(_: _Mapping, item: dict[str, Any]) -> str:
    """The failure's id, and the versions: one failure may have several rows."""
    return f"id {item.get('id')}, when {item.get('when')}"


SECTIONS: Mapping[str, tuple[Callable[[_Mapping], Any], Callable[[_Mapping, dict[str, Any]], str]]] = {
    "cuda_majors": (_cuda_major, _key("major")),
    "cuda_releases": (_cuda_release, _key("release")),
    "cudnn": (_cudnn, _key("cuda", "versions", "capabilities")),
    "gpus": (_gpu, _key("capability")),
    "libraries": (_libraries, _key("cuda", "cudnn", "nccl")),
    "tensorflow": (_raw, _key("version")),
    "keras": (_keras, _key("versions")),
    "known_bad": (_known_bad, _key_of_known_bad),
}
"""Each section: how a row is read, and by what two rows are the same."""


def cited(source: str, sources: Mapping[str, str]) -> str | None:
    """A source in words: its citation if it is a short name; None for a short name that is not listed."""
    return sources.get(source) if _SHORT_NAME.fullmatch(source) else source


def _text(value: Any, name: str, path: Path, mistakes: Mistakes, check: Callable[[str], object] | None) -> str | None:
    if not isinstance(value, str):
        quotes = ": put it in quotes" if isinstance(value, int | float | dt.date) else ""
        mistakes.add(path, f"{name!r}: expected text, not {_kind(value)}{quotes}")
        return None
    if not value.strip():
        mistakes.add(path, f"{name!r} is empty")
        return None
    if check is not None:
        try:
            check(value)
        except (ValueError, InvalidRequirement) as error:
            mistakes.add(path, f"{name!r} is {value!r}: {_reason(error)}")
            return None
    return value


def _reason(error: Exception) -> str:
    reasons: tuple[tuple[type[Exception], str], ...] = (
        (InvalidSpecifier, "that is no version specifier (PEP 440), such as '>=3.10,<3.14'"),
        (InvalidVersion, "that is no version (PEP 440), such as '2.21.0'"),
        (InvalidRequirement, "that is no requirement (PEP 508), such as 'numpy<2'"),
    )
    return next((words for kind, words in reasons if isinstance(error, kind)), str(error))


def _capability(text: str) -> None:
    if not _CAPABILITY.fullmatch(text):
        raise ValueError("that is no compute capability, such as '8.6'")


def _kind(value: Any) -> str:
    kinds: tuple[tuple[type, str], ...] = (
        (bool, f"the truth value {str(value).lower()}"),
        (int, f"the number {value}"),
        (float, f"the number {value}"),
        (str, f"the text {value!r:.60}"),
        (list, f"the list {value!r:.60}"),
        (dict, "a mapping"),
        (dt.date, f"the date {value}"),
    )
    return next((words for kind, words in kinds if isinstance(value, kind)), "nothing" if value is None else "that")
