"""What is seen of the job's folder while it saves."""

import os
from pathlib import Path
from typing import Any

import pytest

from kdoctor_job.target.watching import sizes


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
