"""The sections of a version matrix: how a row of each is read, and by what two rows are the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, get_args

from packaging.version import Version

from kdoctor.matrix.fields import Fields, Mistakes, Path
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

_CAPABILITY = re.compile(r"\d{1,2}\.\d")

_OWN = ("version", "same_as", "note", "verified", "source")
"""Keys of a release that a row with ``same_as`` does not take from the other."""


def read_release(row: Mapping[str, Any], base: Mapping[str, Any], path: Path, mistakes: Mistakes) -> Release:
    """A row of ``tensorflow``, whose missing keys are those of the row that it is the same as."""
    inherited = {key: value for key, value in base.items() if key not in _OWN}
    fields = Fields({**inherited, **row}, path, mistakes)
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


def _raw(fields: Fields) -> Mapping[str, Any]:
    """A release as it stands: it is read when the rows are known that it may build on."""
    return fields.data


def _nccl(fields: Fields, key: str) -> Nccl:
    part = Fields(fields.take(key), (*fields.path, key), fields.mistakes)
    nccl = Nccl(
        linkage=part.choice("linkage", get_args(Linkage)),
        version=part.maybe_text("version"),
        basis=part.text("basis"),
    )
    part.close()
    return nccl


def _cuda_major(fields: Fields) -> CudaMajor:
    row = CudaMajor(
        major=fields.number("major") or 0,
        oldest_driver=fields.text("oldest_driver", numbers),
        source=_source(fields),
    )
    fields.close()
    return row


def _cuda_release(fields: Fields) -> CudaRelease:
    row = CudaRelease(
        release=fields.text("release", numbers),
        driver=fields.maybe_text("driver", numbers),
        source=_source(fields),
    )
    fields.close()
    return row


def _cudnn(fields: Fields) -> CudnnSupport:
    row = CudnnSupport(
        versions=fields.text("versions", specifier),
        cuda=fields.number("cuda") or 0,
        capabilities=fields.text("capabilities", specifier),
        oldest_driver=fields.maybe_text("oldest_driver", numbers),
        source=_source(fields),
    )
    fields.close()
    return row


def _gpu(fields: Fields) -> GpuKind:
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


def _libraries(fields: Fields) -> Libraries:
    row = Libraries(
        cuda=fields.number("cuda", needed=False),
        cudnn=fields.number("cudnn", needed=False),
        nccl=fields.choice("nccl", get_args(Linkage), needed=False),
        sonames=fields.pairs("sonames"),
        source=_source(fields),
    )
    fields.close()
    return row


def _keras(fields: Fields) -> KerasBehaviour:
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


def _known_bad(fields: Fields) -> KnownBad:
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


def _source(fields: Fields) -> Sources:
    sources = fields.texts("source")
    if fields.has("source") and not all(text.strip() for text in sources):
        fields.wrong("source", "a source is empty")
    return sources


def _capability(text: str) -> None:
    if not _CAPABILITY.fullmatch(text):
        raise ValueError("that is no compute capability, such as '8.6'")


def _key(*names: str) -> Callable[[Fields, dict[str, Any]], str]:
    def key_of(_: Fields, item: dict[str, Any]) -> str:
        return ", ".join(f"{name} {item[name]}" for name in names if item.get(name) is not None)

    return key_of


def _key_of_known_bad(_: Fields, item: dict[str, Any]) -> str:
    """The failure's id, and the versions: one failure may have several rows."""
    return f"id {item.get('id')}, when {item.get('when')}"


SECTIONS: Mapping[str, tuple[Callable[[Fields], Any], Callable[[Fields, dict[str, Any]], str]]] = {
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
