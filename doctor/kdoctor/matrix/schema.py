"""A version matrix as a document: what a file may say."""
# ruff: noqa: RUF012 - pydantic copies the defaults

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from kdoctor.matrix.cuda import CudaMajor, CudaRelease, CudnnSupport, Earlier, ForwardCompatibility, PtxVersion
from kdoctor.matrix.keras import KerasFeature, KerasRelease, MeasuredFeature
from kdoctor.matrix.model import GpuKind, KnownBad, Libraries, Platform, Release
from kdoctor.matrix.values import Date, Text, Texts
from kdoctor.yamldoc.validation import StrictDocument

KEYS: Mapping[str, tuple[str, ...]] = {
    "cuda_majors": ("major",),
    "cuda_releases": ("release",),
    "earlier": ("tensorflow",),
    "ptx_versions": ("isa",),
    "cudnn": ("cuda", "versions", "capabilities"),
    "gpus": ("capability",),
    "platforms": ("platform", "framework"),
    "forward_compatibility": ("cuda",),
    "libraries": ("cuda", "cudnn", "nccl"),
    "tensorflow": ("version",),
    "jax": ("version", "extra"),
    "features": ("feature",),
    "keras_releases": ("package", "release"),
    "keras_features": ("feature", "package", "releases"),
    "known_bad": ("id", "when"),
}
"""Each section, and the keys that identify a row: one failure may have several known-bad rows."""

OPTIONAL = (
    "jax", "earlier", "ptx_versions", "platforms", "forward_compatibility", "features", "keras_releases",
    "keras_features",
)  # fmt: skip
"""Sections that a file without ``extends: shipped`` may lack."""

NOT_INHERITED = ("version", "same_as", "note", "verified", "source")
"""Keys of a release that a row with ``same_as`` does not take from the other row."""


class MatrixDocument(StrictDocument):
    """A file with a version matrix, or with rows for the shipped one."""

    schema_: Annotated[Literal["kdoctor/version-matrix/v1"], Field(alias="schema")]
    extends: Literal["shipped", "nothing"] = "nothing"
    """``shipped``: rows are added to the shipped matrix and replace its rows. ``nothing``: every key is required."""
    updated: Date
    platform: Text
    sources: dict[str, Text] = {}
    registering: Texts = ()
    cuda_majors: list[CudaMajor] = []
    cuda_releases: list[CudaRelease] = []
    earlier: list[Earlier] = []
    ptx_versions: list[PtxVersion] = []
    cudnn: list[CudnnSupport] = []
    gpus: list[GpuKind] = []
    platforms: list[Platform] = []
    forward_compatibility: list[ForwardCompatibility] = []
    libraries: list[Libraries] = []
    tensorflow: list[Release] = []
    jax: list[Release] = []
    features: list[MeasuredFeature] = []
    keras: list[Any] = []  # of older files, and not used
    keras_releases: list[KerasRelease] = []
    keras_features: list[KerasFeature] = []
    known_bad: list[KnownBad] = []
