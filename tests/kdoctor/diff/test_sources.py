"""With a real git, in this process."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.catalogs import small_catalog
from helpers.checklist_texts import ONE_CHECK
from helpers.locks import lock
from kdoctor.checklist.problems import ChecklistError
from kdoctor.diff.sources import from_files, from_git
from kdoctor.errors import UsageError
from kdoctor.lock.record import expectations_of
from kdoctor.lock.store import write_lock
from kdoctor.probes.process.child import ChildEnd

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")

LARGEST = 60 * 1024
CATALOG = small_catalog()


def git(arguments: Sequence[str]) -> ChildEnd:
    identity = ("-c", "user.name=ada", "-c", "user.email=ada@example.org")
    done = subprocess.run(["git", *identity, *arguments], check=False, capture_output=True, text=True)
    return ChildEnd(
        exit_code=done.returncode, signal=None, timed_out=False, records=(), chatter=done.stdout, stderr=done.stderr,
        seconds=0.1,
    )  # fmt: skip


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``job.yaml`` with its lock, a checklist in a folder, large ones, and one whose parent is missing."""
    folder = tmp_path_factory.mktemp("repository")
    (folder / "ci").mkdir()
    (folder / "job.yaml").write_text(ONE_CHECK)
    write_lock(folder / "job.lock.yaml", lock(), None)
    (folder / "ci" / "node.yaml").write_text(ONE_CHECK)
    for name, size in (("largest", LARGEST), ("larger", LARGEST + 1)):
        (folder / f"{name}.yaml").write_text(ONE_CHECK + "#" * (size - len(ONE_CHECK) - 1) + "\n")
    (folder / "child.yaml").write_text(
        "schema: kdoctor/checklist/v1\nname: child\nversion: 1\nextends: ./parent.yaml\n"
    )
    for arguments in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "the first"]):
        assert git(["-C", str(folder), *arguments]).ok
    shutil.rmtree(folder / "ci")
    (folder / "job.yaml").write_text("changed")
    (folder / "parent.yaml").write_text(ONE_CHECK)
    return folder


def test_revision_has_the_checklist_and_its_lock(repository: Path) -> None:
    side = from_git("HEAD", repository / "job.yaml", CATALOG, git)
    assert side is not None
    assert side.shown == f"{repository / 'job.yaml'} at HEAD"
    assert (side.checklist.name, side.checklist.version) == ("job", 3)
    assert side.lock == lock()
    assert side.expectations == expectations_of(side.checklist)


def test_folder_may_be_gone(repository: Path) -> None:
    side = from_git("HEAD", repository / "ci" / "node.yaml", CATALOG, git)
    assert side is not None
    assert side.lock is None


def test_file_that_the_revision_lacks_is_none(repository: Path) -> None:
    assert from_git("HEAD", repository / "parent.yaml", CATALOG, git) is None


def test_parent_that_the_revision_lacks_is_an_error(repository: Path) -> None:
    with pytest.raises(ChecklistError, match="no such file in this revision"):
        from_git("HEAD", repository / "child.yaml", CATALOG, git)


def test_large_file_is_refused_instead_of_cut(repository: Path) -> None:
    assert from_git("HEAD", repository / "largest.yaml", CATALOG, git) is not None
    with pytest.raises(ChecklistError, match=str(LARGEST + 1)):
        from_git("HEAD", repository / "larger.yaml", CATALOG, git)


def test_unknown_revision_is_an_error(repository: Path) -> None:
    with pytest.raises(UsageError, match="origin/later: unknown revision") as caught:
        from_git("origin/later", repository / "job.yaml", CATALOG, git)
    assert caught.value.hint is None  # there is no remote to fetch from
    git(["-C", str(repository), "branch", "release"])
    git(["-C", str(repository), "remote", "add", "origin", "/nowhere"])
    with pytest.raises(UsageError, match="did you mean 'release'") as caught:
        from_git("origin/relaese", repository / "job.yaml", CATALOG, git)
    assert str(caught.value.hint).endswith("git fetch origin relaese")


def test_folder_outside_a_repository_is_an_error_with_the_words_of_git(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not in a git repository") as caught:
        from_git("HEAD", tmp_path / "job.yaml", CATALOG, git)
    assert "not a git repository" in (caught.value.hint or "")


@cases(
    ("", None),
    ("\n  \n", None),
    ("warning: odd\nerror: broken\n", "error: broken"),
    ("warning: odd\nfatal: no repository\nnote: stop\n", "fatal: no repository"),
)
def test_hint_is_the_error_of_git(tmp_path: Path, said: str, hint: str | None) -> None:
    def failing(arguments: Sequence[str]) -> ChildEnd:
        return ChildEnd(exit_code=128, signal=None, timed_out=False, records=(), chatter="", stderr=said, seconds=0.1)

    with pytest.raises(UsageError) as caught:
        from_git("HEAD", tmp_path / "job.yaml", CATALOG, failing)
    assert caught.value.hint == hint


def test_copy_of_a_file_has_no_lock(tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(ONE_CHECK)
    write_lock(tmp_path / "job.lock.yaml", lock(), None)
    assert from_files(str(path), CATALOG).lock == lock()
    assert from_files(str(path), CATALOG, at=Path("ci/job.yaml")).lock is None


def test_git_that_cannot_be_started_is_an_error(tmp_path: Path) -> None:
    def missing(arguments: Sequence[str]) -> ChildEnd:
        raise FileNotFoundError(2, "No such file or directory")

    with pytest.raises(UsageError, match=r"needs git.*No such file"):
        from_git("HEAD", tmp_path / "job.yaml", CATALOG, missing)
