"""Reading of wheels, with libraries whose fatbins have the layout that nvcc writes."""

import datetime as dt
import sys
import zipfile
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.command import kdoctor
from helpers.elf_files import fatbin, image
from helpers.shared_libraries import build
from kdoctor.errors import UsageError
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.wheels.fatbins import Image, read_images
from kdoctor.matrix.wheels.row import document, row_of
from kdoctor.matrix.wheels.wheel import read_wheel

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(sys.platform != "linux", reason="ELF is Linux' format")]

PTX_90A = b".version 8.5\n.target sm_90a\n.address_size 64\n"
_SPECIFIC, _LZ4, _ZSTANDARD = 0x100000, 0x2000, 0x8000


def library(path: Path, **sections: bytes) -> Path:
    """A shared library with these bytes in sections: ``nv_fatbin`` or ``rodata``."""
    lines = [
        f'__attribute__((section(".{name}"), used, aligned(8))) const unsigned char in_{name}[] = '
        f"{{{','.join(map(str, content))}}};"
        for name, content in sections.items()
    ]
    return build(path, "\n".join(lines), "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../nvidia/cublas/lib")


COMPILED = fatbin(image(2, 80, b"\x7fELF", (1, 7)), image(2, 90, b"\x7fELF", (1, 7)), image(1, 90, b"?", (8, 3)))
GENERATED = fatbin(image(2, 80, b"\x7fELF", (1, 7)), image(1, 90, PTX_90A))


def test_both_kinds_of_fatbins_are_read(tmp_path: Path) -> None:
    found = set(read_images(library(tmp_path / "libkernels.so.2", nv_fatbin=COMPILED, rodata=GENERATED)))
    assert found == {
        ("nv_fatbin", Image("machine code", "80")),
        ("nv_fatbin", Image("machine code", "90")),
        ("nv_fatbin", Image("PTX", "90", "8.3")),
        ("kernel_gen", Image("machine code", "80")),
        ("kernel_gen", Image("PTX", "90a", "8.5")),  # from its text; the header has no suffix
    }


@cases((_ZSTANDARD | _SPECIFIC, "90a"), (_ZSTANDARD, "90"), (_ZSTANDARD | 0x200000, "90f"))
def test_target_of_compressed_ptx_is_read_from_the_header(tmp_path: Path, flags: int, architecture: str) -> None:
    """CUDA 13.0's nvcc compresses PTX with Zstandard, and sets these flags for compute_90a and compute_100f."""
    path = library(tmp_path / "libkernels.so", nv_fatbin=fatbin(image(1, 90, b"\x28\xb5\x2f\xfd", (9, 0), flags)))
    assert [found for _, found in read_images(path)] == [Image("PTX", architecture, "9.0")]


def wheel(tmp_path: Path, *, code: bool = True) -> Path:
    path = tmp_path / "tensorflow-2.99.0-cp311-cp311-manylinux_2_27_x86_64.whl"
    info = "tensorflow-2.99.0.dist-info"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: tensorflow\nVersion: 2.99.0\nRequires-Dist: numpy>=1.26\n"
            "Requires-Dist: keras>=3.12.0\nRequires-Dist: six\nProvides-Extra: and-cuda\n"
            'Requires-Dist: nvidia-cudnn-cu12<10.0,>=9.3.0.75; extra == "and-cuda"\n'
            'Requires-Dist: nvidia-nccl-cu12<3.0,>=2.27.7; extra == "and-cuda"\n\nText\n',
        )
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: cp311-cp311-manylinux_2_27_x86_64\n")
        archive.writestr(
            "tensorflow/python/platform/build_info.py",
            "build_info = dict([('cuda_version', '12.5.1'), ('cudnn_version', '9'), ('is_cuda_build', True)])\n",
        )
        if code:
            padding = fatbin(image(2, 90, bytes(1 << 20), (1, 7)))
            name = "libtensorflow_framework.so.2"
            made = library(tmp_path / name, nv_fatbin=COMPILED, rodata=GENERATED)
            archive.writestr(f"tensorflow/{name}", made.read_bytes() + padding)
    return path


def test_row_of_a_wheel(tmp_path: Path) -> None:
    facts = read_wheel(wheel(tmp_path))
    assert row_of(facts) == {
        "version": "2.99.0",
        "python": "==3.11.*",
        "requires": ["numpy>=1.26", "keras>=3.12.0"],
        "and_cuda": ["nvidia-cudnn-cu12<10.0,>=9.3.0.75", "nvidia-nccl-cu12<3.0,>=2.27.7"],
        "cuda": "12.5.1",
        "cudnn": "9.3",
        "cubins": [80, 90],
        "ptx": [90],
        "ptx_isa": "8.3",
        "kernel_gen": {"cubins": [80, 90], "ptx": ["90a"], "ptx_isa": "8.5"},
        "nccl": {"linkage": "dynamic", "version": "<3.0,>=2.27.7", "basis": "measured: the wheel contains no NCCL"},
        "glibc": "2.27",
        "runpath": ["cublas"],
    }


def test_printed_file_is_a_matrix(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    own.write_text(document(read_wheel(wheel(tmp_path)), dt.date(2026, 11, 22)))
    release = load_matrix(str(own)).release("2.99.0")
    assert release is not None
    assert release.kernel_gen is not None
    assert (release.kernel_gen.ptx, release.kernel_gen.ptx_isa) == (("90a",), "8.5")


def test_damaged_wheel_is_read_or_refused(tmp_path: Path) -> None:
    made = wheel(tmp_path)
    whole, refused = made.read_bytes(), 0
    for start in range(0, len(whole), 100):
        made.write_bytes(whole[:start] + b"\xff\xff\xff" + whole[start + 3 :])
        try:
            read_wheel(made)
        except UsageError:
            refused += 1
    assert refused > 0


def test_command_prints_a_matrix_file(tmp_path: Path) -> None:
    done = kdoctor("matrix", "add", "--wheel", wheel(tmp_path))
    assert done.returncode == 0, done.stderr
    own = tmp_path / "own.yaml"
    own.write_text(done.stdout)
    assert load_matrix(str(own)).release("2.99.0") is not None
    again = kdoctor("matrix", "--matrix", own, "--driver", "580", "--gpu", "H100", "--python", "3.11")
    assert ">  2.99.0" in again.stdout
