"""What is read from a wheel: metadata, tags, build files, and which libraries count."""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.elf_files import elf, fatbin, image
from kdoctor.errors import UsageError
from kdoctor.matrix.wheels.fatbins import Image
from kdoctor.matrix.wheels.wheel import WheelFacts, read_wheel
from kdoctor_target.inspect.elf import ElfError

MANYLINUX = ("cp311-cp311-manylinux_2_27_x86_64",)
LARGE = 1 << 20


def made(
    folder: Path,
    *,
    requires: Sequence[str] = (),
    tags: Sequence[str] = MANYLINUX,
    members: Mapping[str, bytes] | None = None,
    name: str = "tensorflow",
) -> Path:
    path = folder / f"{name}-2.99.0.whl"
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {name}",
        "Version: 2.99.0",
        *(f"Requires-Dist: {one}" for one in requires),
    ]
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x-2.99.0.dist-info/METADATA", "\n".join(lines) + "\n\nText\n")
        archive.writestr("x-2.99.0.dist-info/WHEEL", "".join(f"Tag: {tag}\n" for tag in tags))
        for member, content in (members or {}).items():
            archive.writestr(member, content)
    return path


def library(folder: Path, content: bytes = b"", size: int = LARGE) -> bytes:
    """A library of that many bytes with this content."""
    path = elf(folder / "made.so", rodata=content)
    found = path.read_bytes()
    path.unlink()
    return elf(folder / "made.so", rodata=content + bytes(size - len(found))).read_bytes()


def read(folder: Path, **changes: object) -> WheelFacts:
    return read_wheel(made(folder, **changes))  # type: ignore[arg-type]


@cases(
    (MANYLINUX, "2.27"),
    (("cp311-cp311-manylinux2014_x86_64",), "2.17"),
    (("cp311-cp311-manylinux2010_x86_64",), "2.12"),
    (("cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64",), "2.17"),
    (("py3-none-any",), None),
    (("cp311-cp311-macosx_12_0_arm64",), None),
    (("cp311-cp311-linux_x86_64", "cp311-cp311-manylinux_2_28_x86_64"), "2.28"),
    ((), None),
)
def test_oldest_c_library_is_in_the_tags(tmp_path: Path, tags: tuple[str, ...], glibc: str | None) -> None:
    assert read(tmp_path, tags=tags).glibc == glibc


def test_requirements_are_divided_by_extra(tmp_path: Path) -> None:
    facts = read(
        tmp_path,
        requires=(
            "numpy>=1.26",
            'six; python_version >= "3.8"',
            'nvidia-nccl-cu12<3; extra == "and-cuda"',
            'nvidia-cudnn-cu12; extra == "and_cuda"',
            'jax-cuda12-pjrt; extra == "with-cuda"',
            'pytest; extra == "dev"',
        ),
    )
    assert facts.requires == ("numpy>=1.26", 'six; python_version >= "3.8"')
    assert facts.and_cuda == ("nvidia-nccl-cu12<3", "nvidia-cudnn-cu12")
    assert facts.with_cuda == ("jax-cuda12-pjrt",)
    assert (facts.name, facts.distribution, facts.version) == ("tensorflow-2.99.0.whl", "tensorflow", "2.99.0")


def test_code_is_read_from_libraries_that_may_hold_kernels(tmp_path: Path) -> None:
    def images(name: str, size: int) -> object:
        return read(tmp_path, members={name: library(tmp_path, fatbin(image(2, 80)), size)}).images

    found = {"kernel_gen": frozenset({Image("machine code", "80")})}
    assert images("tensorflow/python/_some.so", LARGE) == found
    assert images("tensorflow/python/_some.so", LARGE - 1) == {}
    assert images("libsome.so.2.1", LARGE) == found
    assert images("tensorflow/_some.dll", LARGE) == {}
    assert images("tensorflow/_some.so.txt", LARGE) == {}


def test_code_of_all_libraries_is_put_together(tmp_path: Path) -> None:
    one, two = (library(tmp_path, fatbin(image(2, number))) for number in (80, 90))
    facts = read(tmp_path, members={"a/one.so": one, "a/two.so": two, "a/three.so": one})
    assert facts.images == {"kernel_gen": {Image("machine code", "80"), Image("machine code", "90")}}


@cases(
    (b"NCCL version 2.27.7+cuda12.9", "2.27.7"),
    (b"NCCL version 2.27+cuda12.9", None),
    (b"NCCL version %d.%d", None),
    (b"", None),
)
def test_nccl_inside_states_its_version(tmp_path: Path, text: bytes, version: str | None) -> None:
    assert read(tmp_path, members={"a/b.so": library(tmp_path, text)}).nccl == version


def test_archive_without_metadata_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.whl", "w") as archive:
        archive.writestr("x-1.0.dist-info/RECORD", "")
    with pytest.raises(UsageError, match="no METADATA"):
        read_wheel(tmp_path / "x.whl")


def test_source_archive_is_explained(tmp_path: Path) -> None:
    hints = {}
    for name in ("x.tar.gz", "x.whl"):
        (tmp_path / name).write_bytes(b"\x1f\x8b")
        with pytest.raises(UsageError, match="cannot be read as a wheel") as raised:
            read_wheel(tmp_path / name)
        hints[name] = raised.value.hint
    assert "sdist" in (hints["x.tar.gz"] or "")
    assert hints["x.whl"] is None


def test_damaged_library_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read as a wheel") as raised:
        read(tmp_path, members={"a/b.so": b"not a library".ljust(LARGE)})
    assert isinstance(raised.value.__cause__, ElfError)
