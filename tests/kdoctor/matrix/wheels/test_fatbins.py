"""Fatbins byte by byte: what ends one, what an image's header states, and LZ4."""

from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.elf_files import elf, fatbin, image
from kdoctor.matrix.wheels.fatbins import Image, read_images, unpack_lz4

SPECIFIC, FAMILY, LZ4, ZSTANDARD = 0x100000, 0x200000, 0x2000, 0x8000
SM_80 = Image("machine code", "80")


def read(path: Path, content: bytes) -> list[Image]:
    return [found for _, found in read_images(elf(path / "lib.so", rodata=content))]


@pytest.mark.parametrize("broken", [image(2, 0), image(2, 80, head=47), image(2, 80, head=0)])
def test_what_follows_an_invalid_image_is_not_read(tmp_path: Path, broken: bytes) -> None:
    assert read(tmp_path, fatbin(image(2, 80), broken, image(2, 90))) == [SM_80]


def test_fatbin_may_end_with_the_file(tmp_path: Path) -> None:
    path = elf(tmp_path / "lib.so", rodata=b"")
    whole = path.read_bytes()
    path.write_bytes(whole + fatbin(image(2, 80)))
    assert [found for _, found in read_images(path)] == [SM_80]
    path.write_bytes(whole + fatbin(image(2, 80))[:-1])  # a byte is missing
    assert list(read_images(path)) == []
    path.write_bytes(whole + fatbin()[:8])  # the header itself is cut off
    assert list(read_images(path)) == []
    path.write_bytes(whole + fatbin())
    assert list(read_images(path)) == []


def test_image_that_ends_with_its_fatbin_is_read(tmp_path: Path) -> None:
    """The last image fills its fatbin; one that is longer is cut off."""
    assert read(tmp_path, fatbin(image(2, 80, b""))) == [SM_80]
    assert read(tmp_path, fatbin(image(2, 80, b"", head=48))) == [SM_80]
    longer = bytearray(fatbin(image(2, 80)))
    longer[16 + 8] += 1  # the size in the header of the image
    assert read(tmp_path, bytes(longer)) == []


@pytest.mark.parametrize(("flags", "suffix"), [(0, ""), (SPECIFIC, "a"), (FAMILY, "f"), (SPECIFIC | FAMILY, "a")])
def test_suffix_of_machine_code_is_in_its_flags(tmp_path: Path, flags: int, suffix: str) -> None:
    assert read(tmp_path, fatbin(image(2, 80, flags=flags))) == [Image("machine code", f"80{suffix}")]


def literals(text: bytes) -> bytes:
    """An LZ4 sequence of literals."""
    if len(text) < 15:
        return bytes([len(text) << 4]) + text
    rest = len(text) - 15
    return bytes([0xF0, *[255] * (rest // 255), rest % 255]) + text


def match(text: bytes, back: int, count: int) -> bytes:
    """Literals and a match of ``count`` bytes, at least 4, that begins ``back`` bytes before."""
    rest = count - 4 - 15
    low, more = (count - 4, b"") if rest < 0 else (15, bytes([*[255] * (rest // 255), rest % 255]))
    return bytes([len(text) << 4 | low]) + text + back.to_bytes(2, "little") + more


@pytest.mark.parametrize("count", [4, 5, 18, 19, 20, 273, 274, 275, 600])
@pytest.mark.parametrize("back", [1, 2, 3])
def test_matches_repeat_earlier_bytes(back: int, count: int) -> None:
    expected = bytearray(b"abc")
    for _ in range(count):
        expected.append(expected[-back])
    assert unpack_lz4(match(b"abc", back, count) + literals(b"end"), 4096) == bytes(expected) + b"end"


@pytest.mark.parametrize("back", [0, 4, 300])
def test_match_before_the_beginning_ends_the_text(back: int) -> None:
    assert unpack_lz4(match(b"abc", back, 4) + literals(b"end"), 4096) == b"abc"


@cases(
    (b"", b""),
    (b"\xf0", b""),  # the length of the literals is missing
    (b"\xf0\xff", b""),
    (b"\x30ab", b"ab"),  # one of three literals is missing
    (b"\x10a\x01", b"a"),  # half of an offset
    (b"\x1fa\x01\x00", b"a" * 20),  # the length of the match is missing: 15 + 4 at least
)
def test_truncated_text_is_unpacked_as_far_as_it_goes(data: bytes, expected: bytes) -> None:
    assert unpack_lz4(data, 4096) == expected
