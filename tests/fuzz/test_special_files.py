"""Every command that reads a file answers at once if it is a pipe, a device, a loop of links or far too large."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdoctor.cli import main

COMMANDS = {
    "check -c": ("check", "--no-smoke", "-c", "FILE"),
    "check --snapshot": ("check", "--snapshot", "FILE"),
    "snapshot --import": ("snapshot", "--import", "FILE"),
    "topology": ("topology", "--snapshot", "FILE"),
    "rollback": ("rollback", "--to", "FILE"),
    "matrix": ("matrix", "--matrix", "FILE"),
    "checklist validate": ("checklist", "validate", "FILE"),
    "checklist show": ("checklist", "show", "--plain", "FILE"),
    "checklist diff": ("checklist", "diff", "FILE", "FILE"),
    "diagnose": ("diagnose", "FILE.ipynb"),
    "fleet merge": ("fleet", "merge", "FILE"),
    "fleet diff": ("fleet", "diff", "FILE", "FILE"),
    "fleet run": ("fleet", "run", "--engine", "ssh", "--nodes-file", "FILE"),
    "history": ("history", "list"),
    "lint": ("lint", "FILE.py"),
    "lint a folder": ("lint", "FOLDER"),
    "git-diff": ("checklist", "git-diff", "job.yaml", "FILE", "0", "0", "FILE", "0", "0"),
}
KINDS = ("named pipe", "sparse", *(pytest.param(name, marks=pytest.mark.faults) for name in ("device", "loop")))
IS_FINDING = {"lint", "lint a folder"}
"""Commands that report a file that cannot be read, and go on with the others."""
LIMIT_S = 20


@pytest.fixture(params=KINDS)
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder in which every file is of one kind. A reader that waits for ever is ended."""
    for name in ("file", "file.py", "file.ipynb"):
        path = tmp_path / name
        if request.param == "named pipe":
            os.mkfifo(path)
        elif request.param == "sparse":
            path.touch()
            os.truncate(path, 10 * 2**30)
        else:
            path.symlink_to("/dev/zero" if request.param == "device" else name)
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.alarm(LIMIT_S)
    yield tmp_path
    signal.alarm(0)


@pytest.mark.parametrize("command", COMMANDS)
def test_special_file_is_refused(
    command: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word.replace("FILE", str(folder / "file")).replace("FOLDER", str(folder)) for word in COMMANDS[command]]
    monkeypatch.setattr("sys.argv", ["kdoctor", *words])
    monkeypatch.setenv("KDOCTOR_HISTORY", str(folder / "file"))
    with pytest.raises(SystemExit) as ended:
        main()
    codes = {0} if command == "git-diff" else {1, 2} if command in IS_FINDING else {2}
    if command == "history" and (folder / "file").is_symlink() and not (folder / "file").exists():
        codes = {0}  # it is as a history that does not exist
    written = capsys.readouterr()
    assert ended.value.code in codes, written
    assert "file" in written.out + written.err or codes == {0}


@pytest.mark.parametrize("name", ["a" * 300, "~no-such-user/file"], ids=["too long", "home of nobody"])
@pytest.mark.parametrize(
    "command",
    [*(name for name in COMMANDS if name not in {"git-diff", "lint a folder"}), "check --python", "fleet history"],
)
def test_name_that_cannot_exist_is_refused(
    command: str, name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = COMMANDS.get(command) or (
        *command.split(),
        *(["FILE", "--no-smoke"] if "--python" in command else ["FILE"]),
    )
    monkeypatch.setattr("sys.argv", ["kdoctor", *(word.replace("FILE", name) for word in words)])
    monkeypatch.setenv("KDOCTOR_HISTORY", name)
    with pytest.raises(SystemExit) as ended:
        main()
    written = capsys.readouterr()
    assert ended.value.code in ({0, 2} if command == "history" else {1, 2} if command in IS_FINDING else {2}), written
