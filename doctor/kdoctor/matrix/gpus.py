"""Finds the compute capability of a GPU by its name."""

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from kdoctor.errors import UsageError, near_miss
from kdoctor.matrix.model import GpuKind, VersionMatrix
from kdoctor.records import record

_BRANDS = frozenset({"nvidia", "tesla", "geforce"})
"""Words that do not identify a model, and are not in the matrix."""

_VARIANT = re.compile(
    r"ti|super|d|laptop|mobile|gpu|graphics|generation|edition|server|workstation|max|q|with|design|device"
)
"""Words for variants of one model, which share a capability."""

_SIZE = re.compile(r"\d+(gb|g|mb)|sxm\d?|pcie|nvl|hbm\d?e?|\d+q|\d+c")
"""Memory, form factor and virtual GPU profiles."""

_PROFILE = re.compile(r"\b([ahv]\d{2,3})[dlmsx]{1,2}(?=(-\d+){1,2}[abcq]\b)")
"""The letters for memory and form factor in the name of a virtual GPU: A100DX-80C, H100XM-1-10C."""

_COUNT = re.compile(r"^\s*\d+\s*[x*\u00d7]\s*(?=\D)", re.IGNORECASE)
"""``8x A100``."""

_OTHER_MAKERS = re.compile(
    r"\b(amd|radeon|instinct|mi\d{2,3}[a-z]?|rx|intel|arc|gaudi\d?|apple|m\d (pro|max|ultra)|tpu|trainium\d?)\b"
)
"""Words of names of GPUs and accelerators that are not NVIDIA's."""

_GLUED = re.compile(r"\b(rtx|gtx)(?=\d)|(?<=\d{3})(?=(?:ti|super)\b)")
_CAPABILITY = re.compile(r"(?:cc|sm_?|compute_?)?\s*(\d{1,2})\.?(\d)[af]?", re.IGNORECASE)
_LOOKALIKES = str.maketrans("oil", "011")
_FEWEST_CHARACTERS = 3
_SUGGESTED = 6


@record
class NamedGpu:
    """A GPU to judge."""

    name: str
    """As it was given."""
    capability: str
    """``8.0``."""
    arm_only: bool = False
    """Whether this model only comes with an Arm processor."""
    data_center: bool = False
    """Whether it is a data-center GPU, on which cuda-compat works."""

    @property
    def shown(self) -> str:
        """``A100 (8.0)``; a capability given as the name is shown once."""
        return f"compute capability {self.name}" if self.name == self.capability else f"{self.name} ({self.capability})"


class GpuNameError(UsageError):
    """A GPU name matches no model of the matrix, or models of different capabilities."""


def find_gpu(matrix: VersionMatrix, name: str) -> NamedGpu:
    """The GPU of that name: as the driver spells it, an unambiguous part of it, or a compute capability.

    ``NVIDIA A100-SXM4-80GB``, ``A100``, ``3090``, ``RTX 4090 Laptop GPU``, ``8.6``, ``sm_86``.

    Raises:
        GpuNameError: no model matches, or several with different capabilities do.
    """
    stated = _CAPABILITY.fullmatch(name.strip())
    if stated and (name.strip().lower()[:2] in ("cc", "sm", "co") or "." in name):
        return _of_capability(matrix, name, f"{int(stated[1])}.{stated[2]}")
    if _OTHER_MAKERS.search(name.lower()):
        raise GpuNameError(
            f"{name!r} is not an NVIDIA GPU, and the version matrix covers no others",
            hint="AMD and Apple publish tensorflow-rocm and tensorflow-metal",
        )
    words = _words(name)
    found = _matches(matrix, words)
    capabilities = {kind.capability for kind, _ in found}
    if len(capabilities) == 1:
        kind = found[0][0]
        return NamedGpu(
            name=name,
            capability=kind.capability,
            arm_only=all(model in kind.arm_models for _, model in found),
            data_center=all(model in kind.data_center for _, model in found),
        )
    if capabilities:
        several = all(_contains(words, model.lower().split()) for _, model in found)
        models = ", ".join(dict.fromkeys(f"{model} ({kind.capability})" for kind, model in found[:_SUGGESTED]))
        more = ", ..." if len(found) > _SUGGESTED else ""
        chips = f"it is sold with compute capability {' or '.join(kind.capability for kind, _ in found)}"
        raise GpuNameError(
            f"GPU name {name!r} is ambiguous: {chips if several else models + more}",
            hint="Give the full name, or the compute capability, such as --gpu 8.6 "
            "(nvidia-smi --query-gpu=compute_cap --format=csv). For several models, repeat --gpu",
        )
    raise GpuNameError(
        f"unknown GPU {name!r}{_suggestion(matrix, words)}",
        hint="Give the name that nvidia-smi --list-gpus prints, or the compute capability, such as --gpu 8.6 "
        "(nvidia-smi --query-gpu=compute_cap --format=csv)",
    )


def _of_capability(matrix: VersionMatrix, name: str, capability: str) -> NamedGpu:
    """A GPU of that capability, also of one without models: the code of a build decides by the number."""
    kind = matrix.capability(capability)
    return NamedGpu(
        name=f"a GPU of compute capability {capability}" if kind is None else name,
        capability=capability,
        arm_only=kind is not None and kind.arm_only,
        data_center=kind is not None and bool(kind.data_center) and not kind.models,
    )


def _words(name: str) -> list[str]:
    text = _GLUED.sub(lambda found: f"{found[0]} ", _PROFILE.sub(r"\1", _COUNT.sub("", name.lower())))
    return [word for word in re.split(r"[^a-z0-9.]+", text) if word and word not in _BRANDS]


def _models(matrix: VersionMatrix) -> Iterator[tuple[GpuKind, str, list[str]]]:
    for kind in matrix.gpus:
        for model in kind.names:
            yield kind, model, model.lower().split()


def _matches(matrix: VersionMatrix, words: list[str]) -> list[tuple[GpuKind, str]]:
    """The models with the longest names that are completely in the words; else those that contain all the words."""
    whole = [(kind, model, len(parts)) for kind, model, parts in _models(matrix) if _contains(words, parts)]
    if whole:
        longest = max(length for _, _, length in whole)
        return [(kind, model) for kind, model, length in whole if length == longest]
    short = [word for word in words if not _VARIANT.fullmatch(word) and not _SIZE.fullmatch(word)]
    if not any(len(word) >= _FEWEST_CHARACTERS for word in short):
        return []
    return [(kind, model) for kind, model, parts in _models(matrix) if _in_order(short, parts)]


def _contains(words: list[str], parts: list[str]) -> bool:
    """Whether the words contain the parts of a model's name as a sequence."""
    starts = range(len(words) - len(parts) + 1)
    return any(all(map(fnmatchcase, words[start : start + len(parts)], parts)) for start in starts)


def _in_order(words: list[str], parts: list[str]) -> bool:
    """Whether the parts of a model's name contain all words, in that order."""
    rest = iter(parts)
    return all(any(fnmatchcase(word, part) for part in rest) for word in words)


def _suggestion(matrix: VersionMatrix, words: list[str]) -> str:
    if len(words) == 1 and (stated := re.fullmatch(r"(\d{1,2})(\d)", words[0])):
        capability = f"{stated[1]}.{stated[2]}"
        return f"; did you mean {capability!r}?" if matrix.capability(capability) else ""
    names = {" ".join(parts): model for _, model, parts in _models(matrix)}
    found = _matches(matrix, [word.translate(_LOOKALIKES) for word in words])
    meant = found[0][1] if found else names.get(near_miss(" ".join(words), names) or "")
    return f"; did you mean {meant!r}?" if meant else ""
