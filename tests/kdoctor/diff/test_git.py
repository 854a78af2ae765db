"""With a real git: a revision as the base, the external diff, and textconv."""

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.command import KDOCTOR, captured, environ, kdoctor
from helpers.locks import lock
from helpers.reports import passing_report
from kdoctor.catalog.load import load_catalog
from kdoctor.history.record import keep
from kdoctor.lock.document import text_of

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")


def git(folder: Path, *arguments: str, code: int = 0) -> str:
    command = ["git", "-c", "user.name=ada", "-c", "user.email=ada@example.org", "-C", str(folder), *arguments]
    done = captured(command, env=environ(HOME=str(folder)))
    assert done.returncode == code, done.stderr
    return done.stdout


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository whose branch ``main`` has a checklist that extends another."""
    (tmp_path / "ci").mkdir()
    text = load_catalog().checklists["cpu-smoke"].read_text(encoding="utf-8")
    (tmp_path / "team.yaml").write_text(text.replace("name: cpu-smoke", "name: team"))
    (tmp_path / "ci" / "node.yaml").write_text(
        "schema: kdoctor/checklist/v1\nname: node\nversion: 1\nextends: ../team.yaml\n"
    )
    git(tmp_path, "init", "--quiet", "--initial-branch", "main")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "the first")
    return tmp_path


def loosen(repository: Path) -> None:
    path = repository / "team.yaml"
    path.write_text(path.read_text().replace("severity: warning", "severity: info"))


def test_base_revision_includes_what_it_extends(repository: Path) -> None:
    same = kdoctor("checklist", "diff", "ci/node.yaml", "--base", "main", cwd=repository)
    assert same.stdout == "ci/node.yaml at main -> ci/node.yaml: no changes\n", same.stderr
    loosen(repository)
    done = kdoctor("checklist", "diff", "ci/node.yaml", "--base", "main", "-f", "json", cwd=repository)
    document = json.loads(done.stdout)
    assert done.returncode == 0
    assert [(item["kind"], item["where"]) for item in document["changes"]] == [
        ("loosened", "checks.smoke.starved-replica.severity")
    ]


def test_lock_is_recorded_again_in_the_environment_of_the_last_passing_run(repository: Path) -> None:
    place = str(repository / "history.sqlite")
    report = replace(passing_report(), target=f"{sys.executable} (Python 3.11.7)")
    assert (
        keep(replace(report, checklist=replace(report.checklist, name="node")), "", {"KDOCTOR_HISTORY": place}) is None
    )
    (repository / "ci/node.lock.yaml").write_text(text_of(lock().model_copy(update={"checklist": "node"})))
    asked = ("checklist", "diff", "team.yaml", "ci/node.yaml")
    done = kdoctor(*asked, cwd=repository, KDOCTOR_NO_HISTORY="0", KDOCTOR_HISTORY=place)
    assert f"kdoctor checklist record ci/node.yaml --python {sys.executable}\n" in done.stdout


def test_fail_on_loosened_exits_with_1(repository: Path) -> None:
    loosen(repository)
    arguments = ("checklist", "diff", "ci/node.yaml", "--base", "main", "--format", "markdown", "--fail-on")
    done = kdoctor(*arguments, "loosened", cwd=repository)
    assert done.returncode == 1
    assert done.stdout.startswith("### kdoctor checklist: 1 loosened\n")
    assert kdoctor(*arguments, "tightened", cwd=repository).returncode == 0


def test_revision_as_git_writes_it_names_the_option(repository: Path) -> None:
    done = kdoctor("checklist", "diff", "main:ci/node.yaml", "ci/node.yaml", cwd=repository)
    assert done.returncode == 2
    assert "checklist diff ci/node.yaml --base main" in done.stderr


def test_base_works_from_another_folder(repository: Path) -> None:
    loosen(repository)
    done = kdoctor("checklist", "diff", "node.yaml", "--base", "HEAD", cwd=repository / "ci")
    assert "1 loosened" in done.stdout


@cases(
    (("ci/node.yaml", "--base", "nowhere"), "--base "),
    (("ci/node.yaml", "--base", "--help-me"), "--base "),
    (("ci/node.yaml",), "--base"),
    (("a", "b", "--base", "main"), "--base"),
    (("ci/none.yaml", "--base", "main"), "ci/none.yaml: "),
)
def test_invalid_arguments_exit_with_2(repository: Path, arguments: tuple[str, ...], named: str) -> None:
    done = kdoctor("checklist", "diff", *arguments, cwd=repository)
    assert done.returncode == 2
    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_base_outside_a_repository_exits_with_2(repository: Path) -> None:
    shutil.rmtree(repository / ".git")
    done = kdoctor("checklist", "diff", "ci/node.yaml", "--base", "main", cwd=repository, GIT_CEILING_DIRECTORIES="/")
    assert done.returncode == 2
    assert "git repository" in done.stderr


def test_shipped_checklist_is_not_compared_with_a_revision(repository: Path) -> None:
    done = kdoctor("checklist", "diff", "cpu-smoke", "--base", "main", "--format", "json", cwd=repository)
    assert (done.returncode, json.loads(done.stdout)["changes"], done.stderr) == (0, [], "")


def test_checklist_that_the_base_lacks_is_new(repository: Path) -> None:
    (repository / "ci" / "new.yaml").write_text((repository / "ci" / "node.yaml").read_text())
    done = kdoctor("checklist", "diff", "ci/new.yaml", "--base", "main", "--fail-on", "loosened", cwd=repository)
    assert done.returncode == 0
    assert "the whole checklist is new" in done.stderr
    for form, start in (("markdown", "### kdoctor checklist: 1 tightened"), ("json", "{")):
        shown = kdoctor("checklist", "diff", "ci/new.yaml", "--base", "main", "--format", form, cwd=repository).stdout
        assert shown.startswith(start)
        assert "ci/new.yaml is not in main: the whole checklist is new" in shown.replace("\\", "")


def test_two_locks_are_compared(tmp_path: Path) -> None:
    (tmp_path / "old.lock.yaml").write_text(text_of(lock()))
    (tmp_path / "new.lock.yaml").write_text(text_of(lock(kdoctor="9.9")))
    done = kdoctor("checklist", "diff", "old.lock.yaml", "new.lock.yaml", "--fail-on", "moved", cwd=tmp_path)
    assert done.returncode == 1
    assert "old.lock.yaml -> new.lock.yaml: 1 moved" in done.stdout


def test_external_diff_shows_kinds_of_changes(repository: Path) -> None:
    (repository / ".gitattributes").write_text("ci/*.yaml diff=kdoctor\nteam.yaml diff=kdoctor\n")
    git(repository, "config", "diff.kdoctor.command", f"{' '.join(KDOCTOR)} checklist git-diff")
    loosen(repository)
    node = repository / "ci" / "node.yaml"
    node.write_text("# a comment\n" + node.read_text().replace("version: 1", "version: 2"))
    shown = git(repository, "diff", "--ext-diff")
    assert "a/team.yaml -> b/team.yaml: 1 loosened" in shown
    assert "checks.smoke.starved-replica.severity: warning -> info" in shown
    assert "1 cosmetic" in shown
    node.write_text("schema: broken\n")
    git(repository, "checkout", "--quiet", "team.yaml")
    assert "'broken'" in git(repository, "diff", "--ext-diff")
    node.unlink()
    assert "checklist removed" in git(repository, "diff", "--ext-diff")


def test_textconv_hides_order_and_comments(repository: Path) -> None:
    (repository / ".gitattributes").write_text("team.yaml diff=kdoctor\n")
    git(repository, "config", "diff.kdoctor.textconv", f"{' '.join(KDOCTOR)} checklist show --plain")
    team = repository / "team.yaml"
    lines = team.read_text().splitlines(keepends=True)
    first = lines.index("  - id: versions.tensorflow-installed\n")
    lines.insert(first + 3, lines.pop(first))
    team.write_text("# another comment\n" + "".join(lines))
    assert git(repository, "diff", "--no-textconv")
    assert "versions" not in git(repository, "diff")
    loosen(repository)
    changed = [line for line in git(repository, "diff").splitlines() if line.startswith(("-  ", "+  "))]
    assert changed == [
        "-  - {id: smoke.starved-replica, severity: warning}",
        "+  - {id: smoke.starved-replica, severity: info}",
    ]


def test_textconv_shows_an_invalid_checklist_unchanged(repository: Path) -> None:
    (repository / ".gitattributes").write_text("*.yaml diff=kdoctor\n")
    git(repository, "config", "diff.kdoctor.textconv", f"{' '.join(KDOCTOR)} checklist show --plain")
    node, lock = repository / "ci" / "node.yaml", repository / "ci" / "node.lock.yaml"
    node.write_text(node.read_text() + "<<<<<<< ours\n")
    lock.write_text("schema: kdoctor/lock/v1\n")
    shown = git(repository, "diff")
    assert "+<<<<<<< ours" in shown
    node.write_bytes(b"name: \xff\n")
    assert "+name: \N{REPLACEMENT CHARACTER}" in git(repository, "diff")
    git(repository, "add", ".")
    assert "+schema: kdoctor/lock/v1" in git(repository, "diff", "--cached")


def test_git_starts_the_interpreter_of_these_tests() -> None:
    assert KDOCTOR[0] == sys.executable
