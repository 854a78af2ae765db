import os
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.catalogs import small_catalog
from helpers.checklist_texts import FULL, problems_of
from kdoctor.catalog.load import Catalog
from kdoctor.checklist.load import load_checklist
from kdoctor.checklist.problems import ChecklistError


@pytest.fixture
def catalog() -> Catalog:
    return small_catalog()


def test_misspelt_name_lists_the_shipped_checklists(catalog: Catalog) -> None:
    shipped = replace(catalog, checklists={"cpu-smoke": Path("x"), "multi-gpu-keras": Path("y")})
    with pytest.raises(ChecklistError) as caught:
        load_checklist("cpu-smok", shipped)
    message, hint = str(caught.value).splitlines()
    assert message.startswith("cpu-smok: ")
    assert "'cpu-smoke'" in message
    assert "cpu-smoke, multi-gpu-keras" in hint
    assert "./cpu-smok.yaml" in hint


def test_file_in_the_working_folder_needs_no_slash(
    tmp_path: Path, catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine").write_text(FULL)
    assert load_checklist("mine", catalog).source == "mine"


def test_missing_path_suggests_a_similar_file(tmp_path: Path, catalog: Catalog) -> None:
    (tmp_path / "job.yaml").write_text(FULL)
    with pytest.raises(ChecklistError, match=r"job\.yml: .*job\.yaml'"):
        load_checklist(str(tmp_path / "job.yml"), catalog)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_file_is_refused(tmp_path: Path, catalog: Catalog) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(FULL)
    path.chmod(0)
    with pytest.raises(ChecklistError, match="Permission denied"):
        load_checklist(str(path), catalog)


def test_overlong_name_is_not_a_file(catalog: Catalog) -> None:
    with pytest.raises(ChecklistError) as caught:
        load_checklist("x" * 5000, catalog)
    assert caught.value.hint


def test_path_with_a_null_byte_is_refused(catalog: Catalog) -> None:
    with pytest.raises(ChecklistError, match="null byte"):
        load_checklist("a/b\0c", catalog)


def test_large_file_is_refused(tmp_path: Path, catalog: Catalog) -> None:
    (problem,) = problems_of(tmp_path, catalog, b"#" * (512 * 1024 + 1))
    assert "512 KiB" in problem
