"""What is seen of the job's folder while it saves."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kdoctor_job.target.watching import other_place, sizes


def test_folder_that_ends_meanwhile_hides_no_other_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # So TensorFlow's folders of a save that is being written, of which two workers have two.
    (tmp_path / "ckpt-1_temp").mkdir()
    (tmp_path / "saves").mkdir()
    (tmp_path / "saves/ckpt-1.index").write_bytes(b"123")
    scan = os.scandir

    def vanished(folder: Any) -> Any:
        if str(folder).endswith("_temp"):
            raise FileNotFoundError(folder)
        return scan(folder)

    monkeypatch.setattr(os, "scandir", vanished)
    assert {path.name: size for path, (size, _) in sizes(tmp_path).items()} == {"ckpt-1.index": 3}


@pytest.mark.parametrize(
    ("attributes", "found"),
    [
        ({"filepath": "FOLDER/{epoch}.keras", "monitor": "val_loss", "save_freq": "epoch", "options": None}, None),
        ({"_backup_dir": Path("FOLDER"), "file_flags": ""}, None),
        ({"filename": "log.csv"}, "SimpleNamespace.filename is 'log.csv'"),
        ({"filepath": "FOLDER/../run7/{epoch}.keras"}, "SimpleNamespace.filepath is 'FOLDER/../run7/{epoch}.keras'"),
        ({"log_dir": Path("/data/logs")}, "SimpleNamespace.log_dir is '/data/logs'"),
        ({"save_folder": "FOLDER2"}, "SimpleNamespace.save_folder is 'FOLDER2'"),
    ],
)
def test_paths_outside_the_folder_are_found(attributes: dict[str, Any], found: str | None, tmp_path: Path) -> None:
    placed = {
        name: type(value)(str(value).replace("FOLDER", str(tmp_path / "job"))) if value else value
        for name, value in attributes.items()
    }
    wanted = found and found.replace("FOLDER", str(tmp_path / "job"))
    assert other_place([SimpleNamespace(), SimpleNamespace(**placed)], tmp_path / "job") == wanted
