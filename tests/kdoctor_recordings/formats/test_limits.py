"""The limits of the readers of dumps, and what they read next to a limit."""

import pytest

from helpers.cases import cases
from helpers.kdoctor_recordings.dumps import LOG, query
from kdoctor.facts import KernelDriver
from kdoctor_recordings.formats.part import Section
from kdoctor_recordings.formats.pasted import unquote
from kdoctor_recordings.formats.proc_version import parse
from kdoctor_recordings.formats.split import decode, is_log_alone
from kdoctor_recordings.formats.values import NotKnownError, read_processes


@cases(
    (LOG.encode(), True),
    (LOG.encode() + b"\0", False),
    (b"\x1f\x8b" + LOG.encode(), False),
    (b"\xff\xfe" + LOG.encode("utf-16-le"), False),
    (query("3B").encode(), False),
    (f"{LOG}{query('3B')}".encode(), False),
    (b"", False),
)
def test_log_alone_is_text_without_another_dump(start: bytes, *, alone: bool) -> None:
    assert is_log_alone(start) is alone


@pytest.mark.parametrize("codec", ["utf-16-le", "utf-16-be"])
@pytest.mark.parametrize(("length", "is_decoded"), [(8, False), (9, True)])
def test_wide_text_without_a_mark_is_known_by_nine_zeros(codec: str, length: int, *, is_decoded: bool) -> None:
    text = "x" * length
    assert decode(text.encode(codec)) == text  # zeros are removed from other text
    other = "é" * 2 + "x" * (length - 2)
    assert (decode(other.encode(codec)) == other) is is_decoded


@cases(
    (["node7: a", "node7: b", "node7: c", "node7: d"], ["node7: a", "node7: b", "node7: c", "node7: d"]),
    (["> a", "> b"], ["a", "b"]),
    (["  a", "    b"], ["a", "  b"]),
    (["a", "  b"], ["a", "  b"]),
    ([], []),
)
def test_marks_before_lines_are_removed(lines: list[str], plain: list[str]) -> None:
    assert unquote(lines) == plain


NVRM = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.158.01  Mon Jun  2 14:46:07 UTC 2025"


@cases(
    ((NVRM,), True, "570.158.01"),
    ((NVRM, "GCC version:  gcc"), False, "570.158.01"),
    ((NVRM[:-26],), False, "570.158.01"),
    (("NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.158.01",), True, "570.158.01"),
    (("NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.158.01",), False, None),  # the last word may be cut off
)
def test_version_that_may_be_cut_off_is_unknown(lines: tuple[str, ...], *, whole: bool, version: str | None) -> None:
    section = Section(kind="/proc/driver/nvidia/version", file="v", lines=lines, whole=whole, ended=whole)
    (group,) = parse(section).groups
    assert isinstance(group, KernelDriver)
    assert group.version == version


def process(pid: int, **more: str) -> dict[str, str]:
    return {"process id": str(pid), "type": "C", "name": "python", **more}


USED = {"used gpu memory": "10 MiB"}


def test_last_process_of_a_file_that_ends_may_be_incomplete() -> None:
    whole = [process(1, **USED), process(2, **USED)]
    assert [one.pid for one in read_processes("", whole, more=True)] == [1, 2]
    cut = [process(1, **USED), process(2)]
    assert [one.pid for one in read_processes("", cut, more=True)] == [1]
    assert [one.pid for one in read_processes("", cut, more=False)] == [1, 2]
    assert [one.pid for one in read_processes("", [process(1), process(2, **USED)], more=True)] == [1, 2]
    with pytest.raises(NotKnownError):
        read_processes("", [process(1)], more=True)
    assert read_processes("None", [], more=True) == ()
