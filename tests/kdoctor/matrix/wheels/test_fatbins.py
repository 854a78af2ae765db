"""Fatbins byte by byte: what ends one, what an image's header states, and LZ4."""

from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.elf_files import elf, fatbin, image
from kdoctor.matrix.wheels.fatbins import Image, read_images, unpack_lz4

SPECIFIC, FAMILY, LZ4, ZSTANDARD = 0x100000, 0x200000, 0x2000, 0x8000
SM_90A = b".version 8.5\n.target sm_90a\n"
SM_80 = Image("machine code", "80")
SM_90 = Image("machine code", "90")


def read(path: Path, content: bytes) -> list[Image]:
    return [found for _, found in read_images(elf(path / "lib.so", rodata=content))]


def test_place_is_the_section_of_the_compiler_or_data(tmp_path: Path) -> None:
    path = elf(tmp_path / "lib.so", fatbin(image(2, 80)), **{".nv_fatbin": fatbin(image(2, 90)), "rodata": b""})
    assert list(read_images(path)) == [("kernel_gen", SM_80), ("nv_fatbin", SM_90)]
    last = elf(tmp_path / "lib.so", __nv_relfatbin=b"filler--" + fatbin(image(2, 80)), rodata=fatbin(image(2, 90)))
    assert list(read_images(last)) == [("nv_fatbin", SM_80), ("kernel_gen", SM_90)]


def test_every_fatbin_and_image_is_read(tmp_path: Path) -> None:
    two = fatbin(image(2, 80), image(2, 90))
    assert read(tmp_path, two) == [SM_80, SM_90]
    assert read(tmp_path, two + two) == [SM_80, SM_90] * 2
    assert read(tmp_path, two + b"between" + two) == [SM_80, SM_90] * 2


def test_image_of_another_kind_is_passed_over(tmp_path: Path) -> None:
    assert read(tmp_path, fatbin(image(4, 80), image(0, 80), image(2, 90))) == [SM_90]


def test_images_headers_have_any_length(tmp_path: Path) -> None:
    assert read(tmp_path, fatbin(image(2, 80, head=48), image(2, 80, head=80), image(2, 90))) == [SM_80, SM_80, SM_90]


@pytest.mark.parametrize("broken", [image(2, 0), image(2, 80, head=47), image(2, 80, head=0)])
def test_what_follows_an_invalid_image_is_not_read(tmp_path: Path, broken: bytes) -> None:
    assert read(tmp_path, fatbin(image(2, 80), broken, image(2, 90))) == [SM_80]


@pytest.mark.parametrize("change", [{"version": 2}, {"header": 24}, {"more": 1 << 40}])
def test_bytes_that_only_look_like_a_fatbin_do_not_hide_the_next_one(tmp_path: Path, change: dict[str, int]) -> None:
    assert read(tmp_path, fatbin(image(2, 80), **change) + fatbin(image(2, 90))) == [SM_90]


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


def test_ptx_states_its_target_within_its_first_bytes(tmp_path: Path) -> None:
    assert read(tmp_path, fatbin(image(1, 90, SM_90A))) == [Image("PTX", "90a", "8.5")]
    late = b"//" + b"-" * 4100 + b"\n" + SM_90A
    assert read(tmp_path, fatbin(image(1, 90, late))) == [Image("PTX", "90", "8.5")]
    early = b"//" + b"-" * 4000 + b"\n" + SM_90A
    assert read(tmp_path, fatbin(image(1, 90, early))) == [Image("PTX", "90a", "8.5")]
    assert read(tmp_path, fatbin(image(1, 90, SM_90A, flags=ZSTANDARD))) == [Image("PTX", "90", "8.5")]


def test_ptx_is_read_up_to_its_packed_size(tmp_path: Path) -> None:
    """The size counts padding, which may hold bytes of anything."""
    padded = b"-" * 8 + SM_90A
    assert read(tmp_path, fatbin(image(1, 90, padded, packed=8))) == [Image("PTX", "90", "8.5")]
    assert read(tmp_path, fatbin(image(1, 90, padded, packed=len(padded)))) == [Image("PTX", "90a", "8.5")]


def literals(text: bytes) -> bytes:
    """An LZ4 sequence of literals."""
    if len(text) < 15:
        return bytes([len(text) << 4]) + text
    rest = len(text) - 15
    return bytes([0xF0, *[255] * (rest // 255), rest % 255]) + text


@pytest.mark.parametrize("length", [0, 1, 14, 15, 16, 269, 270, 271, 525, 600])
def test_lengths_of_literals(length: int) -> None:
    text = bytes(index % 251 for index in range(length))
    assert unpack_lz4(literals(text), 4096) == text


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


def test_text_is_unpacked_up_to_the_wanted_length() -> None:
    whole = match(b"abc", 1, 600) + literals(b"end")
    assert unpack_lz4(whole, 100) == b"ab" + b"c" * 98
    assert unpack_lz4(literals(b"abcdef"), 3) == b"abc"
    assert unpack_lz4(literals(b"abc") + b"\x00\x00", 3) == b"abc"


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
