"""The matrix row of a wheel, as a document with that one row: ready for ``--matrix``, or for the shipped matrix."""

import datetime as dt
from collections.abc import Sequence
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from kdoctor.errors import UsageError
from kdoctor.matrix.values import numbers
from kdoctor.matrix.wheels.fatbins import Image, Place
from kdoctor.matrix.wheels.wheel import WheelFacts

_SHOWN = ("keras", "keras-nightly", "tf-keras", "numpy", "protobuf", "h5py", "ml-dtypes")
"""The requirements that decide whether a release fits an environment."""

_WIDTH = 112


def row_of(facts: WheelFacts) -> dict[str, Any]:
    """What the wheel says about each key of a row. Missing keys are not in the wheel."""
    row: dict[str, Any] = {"version": facts.version}
    if facts.distribution != "tensorflow":
        row["distribution"] = canonicalize_name(facts.distribution)
    if facts.pythons:
        row["python"] = f"=={facts.pythons[0]}.*" if len(facts.pythons) == 1 else f">={facts.pythons[0]}"
    row["requires"] = [
        canonical(line) for line in facts.requires if canonicalize_name(Requirement(line).name) in _SHOWN
    ]
    if facts.and_cuda:
        row["and_cuda"] = [canonical(line) for line in facts.and_cuda]
    row |= {"cuda": facts.cuda, "cudnn": _cudnn(facts)}
    compiled, generated = (kernels_of(facts, place) for place in ("nv_fatbin", "kernel_gen"))
    row |= compiled
    if generated["cubins"] or generated["ptx"]:
        row["kernel_gen"] = generated
    row["nccl"] = _nccl(facts)
    row |= {"glibc": facts.glibc, "runpath": list(facts.runpath)}
    return {key: value for key, value in row.items() if value is not None}


def kernels_of(facts: WheelFacts, place: Place) -> dict[str, Any]:
    """The architectures with machine code, the targets of the PTX, and its newest version."""
    images = facts.images.get(place, frozenset())
    ptx = [image for image in images if image.kind == "PTX"]
    newest = max((image.isa or "0" for image in ptx), key=numbers, default=None)
    return {
        "cubins": sorted({int(image.architecture) for image in images if _is_plain(image)}),
        "ptx": _targets(ptx),
        "ptx_isa": newest,
    }


def document(facts: WheelFacts, day: dt.date) -> str:
    """The row as a file for ``--matrix``.

    Raises:
        UsageError: the wheel has no GPU code, or is not TensorFlow.
    """
    if not facts.images:
        raise UsageError(f"{facts.name} has no GPU code: it is a CPU build, or not TensorFlow")
    if facts.cuda is None:
        raise UsageError(f"{facts.name} is not TensorFlow: it does not state the CUDA release of a TensorFlow build")
    row = row_of(facts)
    row |= {"verified": f"{day}: read from {facts.name}", "source": [f"the wheel {facts.name}"]}
    head = {
        "schema": "kdoctor/version-matrix/v1",
        "extends": "shipped",
        "updated": str(day),
        "platform": "linux-x86_64",
    }
    return _yaml(head, flow=False) + _yaml({"tensorflow": [row]}, flow=None)


def _yaml(value: object, *, flow: bool | None) -> str:
    """As YAML; ``None`` puts lists and mappings without others inside on one line."""
    return yaml.safe_dump(value, default_flow_style=flow, sort_keys=False, width=_WIDTH)


def canonical(line: str) -> str:
    """A requirement with the normalized name, for comparing and printing."""
    requirement = Requirement(line)
    requirement.name = canonicalize_name(requirement.name)
    return str(requirement)


def _is_plain(image: Image) -> bool:
    """Machine code that other GPUs of the major run, too."""
    return image.kind == "machine code" and image.architecture.isdecimal()


def _targets(ptx: Sequence[Image]) -> list[str | int]:
    targets = sorted({image.architecture for image in ptx}, key=lambda target: (int(target.rstrip("af")), target))
    return [int(target) if target.isdecimal() else target for target in targets]


def _cudnn(facts: WheelFacts) -> str | None:
    """The oldest cuDNN that the extra accepts; the wheel itself states only the major version."""
    for line in facts.and_cuda:
        requirement = Requirement(line)
        if requirement.name.startswith("nvidia-cudnn-"):
            floors = [item.version for item in requirement.specifier if item.operator in ("==", ">=")]
            if floors:
                return ".".join(floors[0].split(".")[:2])
    return None


def _nccl(facts: WheelFacts) -> dict[str, str]:
    if facts.nccl:
        return {"linkage": "static", "version": facts.nccl, "basis": "measured"}
    wanted = next((Requirement(line) for line in facts.and_cuda if line.startswith("nvidia-nccl-")), None)
    version = {"version": str(wanted.specifier)} if wanted else {}
    return {"linkage": "dynamic", **version, "basis": "measured: the wheel contains no NCCL"}
