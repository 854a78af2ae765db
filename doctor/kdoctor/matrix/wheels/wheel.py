"""Reads what a TensorFlow wheel states about itself, and what is in its libraries. Nothing in it is executed."""

import re
import shutil
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.tags import Tag, parse_tag
from packaging.utils import canonicalize_name

from kdoctor.errors import UsageError
from kdoctor.matrix.wheels.fatbins import Image, Place, read_images
from kdoctor.probes.process.run_folder import run_folder
from kdoctor.records import record
from kdoctor_target.inspect.elf import ElfError, read_library
from kdoctor_target.inspect.environment import read_build

_BUILD_FILES = ("tensorflow/python/platform/build_info.py", "tensorflow/include/third_party/gpus/cuda/cuda_config.h")
_SEARCHER = re.compile(r"tensorflow/(libtensorflow_framework\.so\.2|python/_pywrap_tensorflow_internal\.so)")
"""The libraries with the code that opens CUDA's, the one that decides first."""

_LIBRARY = re.compile(r"[^/]+(/[^/]+)*\.so(\.\d+)*")
_LEAST_BYTES = 1 << 20
"""Smaller libraries hold no kernels."""

_NVIDIA_FOLDER = re.compile(r"/nvidia/(\w+)/lib")
_NCCL_INSIDE = re.compile(rb"NCCL version (\d+\.\d+\.\d+)\+cuda")
_DAMAGED = (
    OSError, zipfile.BadZipFile, zlib.error, EOFError, ElfError, KeyError, NotImplementedError, RuntimeError,
    ValueError,
)  # fmt: skip
"""What reading a file that is not a wheel, or a damaged one, raises."""

_CPYTHON = re.compile(r"cp3(\d{1,3})", re.ASCII)
_EXTRA = re.compile(r'extra == "([^"]+)"')
_MANYLINUX = re.compile(r"manylinux_(\d+)_(\d+)_|manylinux(2014|2010)_")
_LEGACY_GLIBC = {"2014": "2.17", "2010": "2.12"}


@record
class WheelFacts:
    """What a wheel states, and what is in it."""

    name: str
    """Its file name."""
    distribution: str
    version: str
    tags: frozenset[Tag]
    requires: tuple[str, ...]
    """What it always requires."""
    and_cuda: tuple[str, ...]
    """What its extra ``[and-cuda]`` adds."""
    with_cuda: tuple[str, ...]
    """What the extra ``[with-cuda]`` of JAX's plugins adds."""
    cuda: str | None
    cudnn: str | None
    images: Mapping[Place, frozenset[Image]]
    """Its GPU code."""
    runpath: tuple[str, ...]
    """Folders of ``site-packages/nvidia`` that it searches."""
    nccl: str | None
    """The version of the NCCL inside; None if it has none."""

    @property
    def glibc(self) -> str | None:
        """The oldest C library that it supports, by its tag."""
        for tag in sorted(self.tags, key=str):
            found = _MANYLINUX.match(tag.platform)
            if found:
                return f"{found[1]}.{found[2]}" if found[1] else _LEGACY_GLIBC[found[3]]
        return None

    @property
    def pythons(self) -> tuple[str, ...]:
        """``3.11``: the Python versions that this one file is for."""
        minors = {int(found[1]) for tag in self.tags if (found := _CPYTHON.fullmatch(tag.interpreter))}
        return tuple(f"3.{minor}" for minor in sorted(minors))


def read_wheel(path: Path) -> WheelFacts:
    """The facts of a wheel.

    Raises:
        UsageError: it cannot be read, or is not a wheel.
    """
    try:
        with zipfile.ZipFile(path) as archive, run_folder("wheel") as folder:
            return _read(path.name, archive, Path(folder))
    except _DAMAGED as error:
        hint = "A source archive (sdist) has no code for GPUs; give a wheel" if path.name.endswith(".tar.gz") else None
        raise UsageError(f"{path}: cannot be read as a wheel: {error}", hint=hint) from error


def _read(name: str, archive: zipfile.ZipFile, folder: Path) -> WheelFacts:
    members = archive.namelist()
    info = next((member.rpartition("/")[0] for member in members if member.endswith(".dist-info/METADATA")), None)
    if info is None:
        raise UsageError(f"{name}: is not a wheel (it has no METADATA)")
    metadata = HeaderParser().parsestr(archive.read(f"{info}/METADATA").decode("utf-8", "replace"))
    tags = HeaderParser().parsestr(archive.read(f"{info}/WHEEL").decode("utf-8", "replace")).get_all("Tag", [])
    for member in _BUILD_FILES:
        if member in members:
            _extract(archive, member, folder / member)
    build = read_build(str(folder / "tensorflow"))
    lines = metadata.get_all("Requires-Dist", [])
    code = _read_code(archive, folder)
    return WheelFacts(
        name=name,
        distribution=str(metadata["Name"]),
        version=str(metadata["Version"]),
        tags=frozenset(tag for text in tags for tag in parse_tag(text)),
        requires=_requirements(lines, None),
        and_cuda=_requirements(lines, "and-cuda"),
        with_cuda=_requirements(lines, "with-cuda"),
        cuda=build["cuda_version"],
        cudnn=build["cudnn_version"],
        images=code.images,
        runpath=code.runpath,
        nccl=code.nccl,
    )


def _requirements(lines: Sequence[str], extra: str | None) -> tuple[str, ...]:
    """What is always required, or what an extra adds to it."""
    found: list[str] = []
    for line in lines:
        requirement = Requirement(line)
        named = _EXTRA.search(str(requirement.marker or ""))
        if (canonicalize_name(named[1]) if named else None) == extra:
            if extra is not None:
                requirement.marker = None
            found.append(str(requirement))
    return tuple(found)


@dataclass(frozen=True)
class _Code:
    images: Mapping[Place, frozenset[Image]]
    runpath: tuple[str, ...]
    nccl: str | None


def _read_code(archive: zipfile.ZipFile, folder: Path) -> _Code:
    """The GPU code and the search path of the libraries, each extracted on its own: together they have gigabytes."""
    images: dict[Place, set[Image]] = {}
    runpath: tuple[str, ...] = ()
    nccl = None
    for member in _libraries(archive):
        copy = folder / "library"
        _extract(archive, member.filename, copy)
        for place, image in read_images(copy):
            images.setdefault(place, set()).add(image)
        if _SEARCHER.fullmatch(member.filename) and not runpath:
            found = _NVIDIA_FOLDER.findall(read_library(str(copy)).runpath or "")
            runpath = tuple(sorted(dict.fromkeys(found)))
        nccl = nccl or _nccl_inside(copy)
    return _Code({place: frozenset(found) for place, found in images.items()}, runpath, nccl)


def _libraries(archive: zipfile.ZipFile) -> Iterator[zipfile.ZipInfo]:
    members = [
        member
        for member in archive.infolist()
        if _LIBRARY.fullmatch(member.filename) and member.file_size >= _LEAST_BYTES
    ]
    yield from sorted(members, key=lambda member: not _SEARCHER.fullmatch(member.filename))


def _extract(archive: zipfile.ZipFile, member: str, to: Path) -> None:
    """Copy one member to a path that kdoctor chose: the names in an archive are data."""
    to.parent.mkdir(parents=True, exist_ok=True)
    with archive.open(member) as source, to.open("wb") as target:
        shutil.copyfileobj(source, target, 1 << 20)


def _nccl_inside(library: Path) -> str | None:
    """The version in the text that NCCL prints when it starts."""
    with library.open("rb") as file:
        before = b""
        while chunk := file.read(1 << 24):
            found = _NCCL_INSIDE.search(before + chunk)
            if found:
                return found[1].decode()
            before = chunk[-64:]
    return None
