from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.catalogs import small_catalog
from helpers.checklist_texts import FULL, told
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.problems import ChecklistError
from kdoctor.engine.catalog import Catalog


@pytest.fixture
def catalog() -> Catalog:
    return small_catalog()


def test_a_name_with_a_typing_error(catalog: Catalog) -> None:
    shipped = replace(catalog, checklists={"cpu-smoke": Path("x"), "multi-gpu-keras": Path("y")})
    with pytest.raises(ChecklistError) as caught:
        load_checklist("cpu-smok", shipped)
    assert str(caught.value).splitlines() == [
        "cpu-smok: no checklist of that name is shipped; did you mean 'cpu-smoke'?",
        "Shipped are: cpu-smoke, multi-gpu-keras. For a file of your own give its path, such as ./cpu-smok.yaml",
    ]


def test_a_shipped_checklist_is_found_by_name(tmp_path: Path, catalog: Catalog) -> None:
    path = tmp_path / "anything"
    path.write_text(FULL)
    checklist = load_checklist("job", replace(catalog, checklists={"job": path}))
    assert (checklist.name, checklist.source) == ("job", "shipped")


def test_a_file_in_the_working_folder_needs_no_slash(
    tmp_path: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").write_text(FULL)
    assert load_checklist("mine", catalog).source == "mine"


def test_a_path_that_is_not_there(tmp_path: Path, catalog: Catalog) -> None:
    (tmp_path / "job.yaml").write_text(FULL)
    with pytest.raises(ChecklistError, match=r"job\.yml: there is no such file; did you mean 'job\.yaml'\?"):
        load_checklist(str(tmp_path / "job.yml"), catalog)


def test_a_directory(tmp_path: Path, catalog: Catalog) -> None:
    with pytest.raises(ChecklistError, match="this is a directory, not a checklist"):
        load_checklist(f"{tmp_path}/", catalog)


def test_a_pipe_is_not_waited_for(tmp_path: Path, catalog: Catalog) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    with pytest.raises(ChecklistError, match="not a regular file"):
        load_checklist(str(tmp_path / "pipe.yaml"), catalog)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_an_unreadable_file(tmp_path: Path, catalog: Catalog) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(FULL)
    path.chmod(0)
    with pytest.raises(ChecklistError, match="cannot be read: Permission denied"):
        load_checklist(str(path), catalog)


def test_a_name_that_no_file_can_have(catalog: Catalog) -> None:
    with pytest.raises(ChecklistError, match="no checklist of that name is shipped"):
        load_checklist("x" * 5000, catalog)


def test_a_path_with_a_null_byte(catalog: Catalog) -> None:
    with pytest.raises(ChecklistError, match="cannot be read"):
        load_checklist("a/b\0c", catalog)


def test_a_file_that_is_too_large(tmp_path: Path, catalog: Catalog) -> None:
    (problem,) = told(tmp_path, catalog, b"#" * (512 * 1024 + 1))
    assert "too large to be a checklist" in problem
