import os
import shlex
import stat
import threading
from pathlib import Path

import pytest

from helpers.cases import cases
from kdoctor.output import OutputError, OutputFile, Outputs, check_writable, parse_outputs, write_atomically
from kdoctor.report.formats import FORMATS

as_user = pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")


def test_terminal_is_the_default() -> None:
    assert parse_outputs([], FORMATS) == Outputs(stdout="terminal")


def test_formats_and_files_are_parsed(tmp_path: Path) -> None:
    outputs = parse_outputs([f"json={tmp_path}/a=b.json", f"junit={tmp_path}/b.xml"], FORMATS, stdout="markdown")
    assert outputs == Outputs(
        stdout="markdown",
        files=(
            OutputFile(format="json", path=tmp_path / "a=b.json"),
            OutputFile(format="junit", path=tmp_path / "b.xml"),
        ),
    )
    assert list(tmp_path.iterdir()) == []
    assert parse_outputs([f"json={tmp_path}/a=b.json,junit={tmp_path}/b.xml"], FORMATS, stdout="markdown") == outputs


def test_dash_is_stdout() -> None:
    assert parse_outputs(["json=-"], FORMATS) == Outputs(stdout="json")


@cases(
    (["report.json"], None, "--output report.json: expected FORMAT=FILE"),
    (["json="], None, "--output json=: expected FORMAT=FILE"),
    (["jsn=x"], None, "'jsn'; did you mean 'json'?"),
    ([], "jason", "'jason'; did you mean 'json'?"),
    (["json=-"], "terminal", "stdout, not terminal and json"),
    (["json=-", "junit=-"], None, "stdout, not json and junit"),
)
def test_invalid_values_are_refused(values: list[str], stdout: str | None, message: str) -> None:
    with pytest.raises(OutputError) as caught:
        parse_outputs(values, FORMATS, stdout=stdout)
    assert message in caught.value.message


def test_file_named_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="twice"):
        parse_outputs([f"json={tmp_path}/x", f"junit={tmp_path}/./x"], FORMATS)


def test_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError) as caught:
        parse_outputs([f"json={tmp_path}/Ann's $(no)/x.json"], FORMATS)
    assert shlex.split(str(caught.value.hint))[-3:] == ["mkdir", "-p", f"{tmp_path}/Ann's $(no)"]


def test_folder_as_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="is a folder, not a file"):
        check_writable(tmp_path)


def test_file_as_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputError, match="is not a folder"):
        check_writable(tmp_path / "file" / "x.json")


@as_user
def test_read_only_folder_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    with pytest.raises(OutputError, match=r"x\.json: Permission denied"):
        check_writable(tmp_path / "x.json")
    tmp_path.chmod(0o755)


@as_user
def test_read_only_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").touch(mode=0o444)
    with pytest.raises(OutputError, match="read-only"):
        check_writable(tmp_path / "x.json")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="needs a file system that takes no files")
def test_unwritable_file_system_is_refused() -> None:
    with pytest.raises(OutputError, match=r"/proc/x\.json: "):
        check_writable(Path("/proc/x.json"))


def test_check_writable_leaves_no_file(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("old")
    check_writable(tmp_path / "x.json")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x.json", "old")]


def test_new_file_has_default_mode(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    write_atomically(tmp_path / "x.json", "new\n")
    assert (tmp_path / "x.json").read_text() == "new\n"
    assert (tmp_path / "x.json").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_existing_file_keeps_mode_and_link_is_followed(tmp_path: Path) -> None:
    file, link = tmp_path / "x.json", tmp_path / "latest.json"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert file.read_text() == "new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest.json", "x.json"]


def test_failed_replacement_keeps_old_file(tmp_path: Path) -> None:
    folder = tmp_path / "full"
    folder.mkdir()
    (folder / "kept").touch()
    with pytest.raises(OutputError, match="full"):
        write_atomically(folder, "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["full"]
    assert [path.name for path in folder.iterdir()] == ["kept"]


def test_device_is_written_in_place() -> None:
    check_writable(Path(os.devnull))
    write_atomically(Path(os.devnull), "away")
    assert stat.S_ISCHR(Path(os.devnull).stat().st_mode)


def test_pipe_without_a_reader_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    monkeypatch.setattr("kdoctor.output._READER_S", 0.1)
    with pytest.raises(OutputError, match="no process reads this pipe"):
        write_atomically(tmp_path / "pipe", "lost")


def test_pipe_is_written_in_place(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_atomically(pipe, "through")
    reader.join()
    assert read == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_lone_surrogates_are_escaped(tmp_path: Path) -> None:
    write_atomically(tmp_path / "x", "a\udcffb")
    assert (tmp_path / "x").read_bytes() == b"a\\udcffb"


def test_home_of_unknown_user_is_a_missing_folder() -> None:
    with pytest.raises(OutputError, match="does not exist"):
        check_writable(Path("~no-such-user-here/x.json"))
