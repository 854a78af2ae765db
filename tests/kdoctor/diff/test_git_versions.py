"""The external diff driver, called as git calls it, in this process."""

from pathlib import Path

import pytest

from helpers.catalogs import small_catalog
from helpers.checklist_texts import ONE_CHECK
from helpers.locks import lock
from kdoctor.diff.git import compare_as_git_asks
from kdoctor.diff.model import Comparison
from kdoctor.lock.document import LockError, text_of

CATALOG = small_catalog()
NONE = Path("/dev/null")


def versions(folder: Path, old: str | None, new: str | None) -> tuple[Path, Path]:
    """Both versions, as the temporary files that git passes; /dev/null for none."""
    files = []
    for name, text in (("old", old), ("new", new)):
        if text is None:
            files.append(NONE)
        else:
            (folder / name).write_text(text)
            files.append(folder / name)
    return files[0], files[1]


def compared(folder: Path, old: str | None, new: str | None) -> Comparison | str:
    return compare_as_git_asks("ci/job.yaml", *versions(folder, old, new), CATALOG)


def test_two_versions_of_a_checklist_are_named_as_git_names_them(tmp_path: Path) -> None:
    found = compared(tmp_path, ONE_CHECK, ONE_CHECK.replace("owner: me", "owner: you"))
    assert isinstance(found, Comparison)
    assert (found.old, found.new) == ("a/ci/job.yaml", "b/ci/job.yaml")
    assert [(item.where, item.old, item.new) for item in found.changes] == [("owner", "me", "you")]


def test_added_and_removed_checklists_are_a_line(tmp_path: Path) -> None:
    assert compared(tmp_path, None, ONE_CHECK) == "ci/job.yaml: checklist added\n"
    assert compared(tmp_path, ONE_CHECK, None) == "ci/job.yaml: checklist removed\n"


def test_two_versions_of_a_lock_are_compared(tmp_path: Path) -> None:
    found = compared(tmp_path, text_of(lock(kdoctor="0.1")), text_of(lock(kdoctor="0.2")))
    assert isinstance(found, Comparison)
    assert (found.old, found.new) == ("ci/job.yaml", "ci/job.yaml")
    assert [(item.where, item.old, item.new) for item in found.changes] == [("lock.kdoctor", "0.1", "0.2")]


@pytest.mark.parametrize("has_lock_first", [True, False])
def test_lock_and_a_checklist_are_not_compared(tmp_path: Path, *, has_lock_first: bool) -> None:
    texts = (text_of(lock()), ONE_CHECK) if has_lock_first else (ONE_CHECK, text_of(lock()))
    with pytest.raises(LockError):
        compared(tmp_path, *texts)
