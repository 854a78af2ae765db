"""Proposals for names of files that do not exist."""

from pathlib import Path

from helpers.cases import cases
from kdoctor.errors import about_missing_file


@cases(("node.yml", "node.yaml"), ("node.lok.yaml", "node.lock.yaml"), (".vnev", ".venv"), ("trian.yaml", None))
def test_most_similar_file_or_folder_is_proposed(tmp_path: Path, name: str, meant: str | None) -> None:
    for present in ("node.yaml", "node.lock.yaml", ".venv", "train.py"):
        (tmp_path / present).touch()
    proposed = about_missing_file(tmp_path / name, *([".yaml"] if "yaml" in name else []))
    assert proposed == (f"; did you mean {str(tmp_path / meant)!r}?" if meant else "")


def test_missing_folder_is_named(tmp_path: Path) -> None:
    assert about_missing_file(tmp_path / "gone" / "node.yaml") == f"; the folder {tmp_path / 'gone'} does not exist"
