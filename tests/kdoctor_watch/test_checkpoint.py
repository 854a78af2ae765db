from pathlib import Path

import pytest

from kdoctor_watch.callback import save


class Model:
    """Writes what it is named, or half of it if it has an object that cannot be saved."""

    def __init__(self, *, whole: bool = True) -> None:
        self.whole = whole

    def save(self, path: str) -> None:
        Path(path).write_text("model" if self.whole else "mo", encoding="utf-8")
        if not self.whole:
            raise NotImplementedError("\nObject M was created by passing\nnon-serializable argument values")

    def save_weights(self, path: str) -> None:
        Path(path).write_text("weights", encoding="utf-8")


def test_folder_of_the_checkpoint_is_created(tmp_path: Path) -> None:
    path = tmp_path / "runs" / "7" / "last.keras"
    assert save(Model(), path) == path
    assert path.read_text(encoding="utf-8") == "model"
    assert list(path.parent.iterdir()) == [path]


def test_weights_are_saved_if_the_model_cannot_be(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "last.keras").write_text("older", encoding="utf-8")
    saved = save(Model(whole=False), tmp_path / "last.keras")
    assert saved == tmp_path / "last.weights.h5"
    files = {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()}
    assert files == {"last.keras": "older", "last.weights.h5": "weights"}
    (record,) = caplog.records
    assert record.getMessage().endswith("NotImplementedError: Object M was created by passing")


def test_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        save(Model(), tmp_path / "file" / "last.keras")
