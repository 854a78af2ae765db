"""Files of the user: what is read is a regular file of a bounded size."""

import os
from pathlib import Path

import pytest

from kdoctor.errors import UsageError
from kdoctor.inputs import exists, expanded, is_folder, read_bounded, refuse_special


def test_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    file = tmp_path / "node.json"
    file.write_bytes(b"12345678")
    assert read_bounded(file, 8) == b"12345678"
    with pytest.raises(UsageError, match="larger than 0 MiB"):
        read_bounded(file, 7)


def test_sparse_file_is_refused_by_its_size(tmp_path: Path) -> None:
    file = tmp_path / "node.json"
    file.touch()
    os.truncate(file, 10 * 2**30)
    with pytest.raises(UsageError, match="larger than 512 MiB"):
        read_bounded(file)


def test_pipes_and_devices_are_refused(tmp_path: Path) -> None:
    pipe, device = tmp_path / "pipe", tmp_path / "device"
    os.mkfifo(pipe)
    device.symlink_to("/dev/zero")
    for path, kind in ((pipe, "named pipe"), (device, "device")):
        with pytest.raises(UsageError, match=kind):
            read_bounded(path)


def test_pipe_of_a_process_substitution_is_read() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"{}")
    os.close(writing)
    assert read_bounded(Path(f"/dev/fd/{reading}")) == b"{}"
    os.close(reading)


def test_what_cannot_be_looked_at_is_left_to_the_reader(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    for path in (loop, tmp_path / "missing", Path("/dev/null"), tmp_path, Path("a\0b")):
        refuse_special(path)
    with pytest.raises(OSError, match="symbolic links"):
        read_bounded(loop)


def test_home_is_replaced_where_it_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expanded("~/a") == tmp_path / "a"
    assert expanded("~no-such-user/a") == Path("~no-such-user/a")
    assert expanded("a/~") == Path("a/~")


@pytest.mark.parametrize("name", ["a" * 300, "a\0b", "missing"])
def test_name_that_cannot_exist_is_no_folder(name: str) -> None:
    assert not is_folder(Path(name))
    assert not exists(Path(name))
