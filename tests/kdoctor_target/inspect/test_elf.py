import contextlib
import sys
from pathlib import Path

import pytest

from helpers.shared_libraries import build
from kdoctor_target.inspect import elf

pytestmark = [pytest.mark.compiler, pytest.mark.skipif(sys.platform != "linux", reason="ELF is Linux' format")]


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("elf")
    build(folder / "libother.so.2", "int other(void) { return 1; }")
    needs = ("-Wl,--no-as-needed", str(folder / "libother.so.2"))
    return build(folder / "libmarker.so.1", "int x;", *needs, "-Wl,--enable-new-dtags,-rpath,$ORIGIN/a:/b")


def test_library_matches_linker_output(library: Path) -> None:
    read = elf.read_library(str(library))
    assert (read.soname, read.runpath, read.rpath) == ("libmarker.so.1", "$ORIGIN/a:/b", None)
    assert read.needed[0] == "libother.so.2"
    assert not read.no_default_folders


def test_rpath_and_runpath_are_distinguished(tmp_path: Path) -> None:
    read = elf.read_library(str(build(tmp_path / "libold.so", "int x;", "-Wl,--disable-new-dtags,-rpath,/old")))
    assert (read.runpath, read.rpath) == (None, "/old")


def test_interpreter_accepts_its_own_machine(library: Path) -> None:
    elf.verify(str(library), elf.own_header())


def test_every_truncation_is_detected(library: Path, tmp_path: Path) -> None:
    whole = library.read_bytes()
    with library.open("rb") as file:
        header = elf.read_header(file)
        end = max(offset + length for _, offset, _, length in elf._segments(file, header))
    cut = tmp_path / "libcut.so"
    for length in (0, 3, 4, 20, 63, 64, 100, header.program_headers[0] + 1, end // 2, end - 1):
        cut.write_bytes(whole[:length])
        with pytest.raises(elf.ElfError, match="truncated"):
            elf.verify(str(cut), elf.own_header())
    cut.write_bytes(whole[:end])
    elf.verify(str(cut), elf.own_header())


@pytest.mark.parametrize("position", range(0, 64, 3))
def test_damaged_header_is_an_elf_error(library: Path, tmp_path: Path, position: int) -> None:
    data = bytearray(library.read_bytes())
    data[position] ^= 0xFF
    bad = tmp_path / "libbad.so"
    bad.write_bytes(data)
    # Any other exception would be a crash of the probe.
    with contextlib.suppress(elf.ElfError, elf.OtherMachineError):
        elf.verify(str(bad), elf.own_header())
    with contextlib.suppress(elf.ElfError):
        elf.read_library(str(bad))


def test_other_files_are_rejected() -> None:
    with pytest.raises(elf.ElfError, match="ELF header"):
        elf.read_library(__file__)
