"""With a real git: a revision as the base, the external diff, and textconv."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.command import KDOCTOR, environ, kdoctor
from kdoctor.engine.catalog import load_catalog

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git here")


def git(folder: Path, *arguments: str, code: int = 0) -> str:
    command = ["git", "-c", "user.name=ada", "-c", "user.email=ada@example.org", "-C", str(folder), *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environ(HOME=str(folder)))
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


def test_a_revision_is_the_base_with_what_it_extends(repository: Path) -> None:
    same = kdoctor("checklist", "diff", "ci/node.yaml", "--base", "main", cwd=repository)
    assert same.stdout == "ci/node.yaml at main -> ci/node.yaml: no change\n", same.stderr
    loosen(repository)
    done = kdoctor("checklist", "diff", "ci/node.yaml", "--base", "main", "-f", "json", cwd=repository)
    document = json.loads(done.stdout)
    assert done.returncode == 0
    assert [(item["kind"], item["where"]) for item in document["changes"]] == [
        ("loosened", "checks.smoke.starved-replica.severity")
    ]


def test_ci_can_fail_on_what_was_loosened(repository: Path) -> None:
    loosen(repository)
    arguments = ("checklist", "diff", "ci/node.yaml", "--base", "main", "--format", "markdown", "--fail-on")
    done = kdoctor(*arguments, "loosened", cwd=repository)
    assert done.returncode == 1
    assert done.stdout.startswith("### kdoctor checklist: 1 loosened\n")
    assert kdoctor(*arguments, "loosened", cwd=repository).stdout == done.stdout
    assert kdoctor(*arguments, "tightened", cwd=repository).returncode == 0


def test_it_works_from_another_folder(repository: Path) -> None:
    loosen(repository)
    done = kdoctor("checklist", "diff", "node.yaml", "--base", "HEAD", cwd=repository / "ci")
    assert "1 loosened" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("ci/node.yaml", "--base", "nowhere"), "there is no such revision in this repository"),
        (("ci/node.yaml", "--base", "--help-me"), "there is no such revision in this repository"),
        (("ci/node.yaml",), "give two checklists, or one with --base REV"),
        (("a", "b", "--base", "main"), "--base takes one checklist, the new one"),
        (("ci/none.yaml", "--base", "main"), "there is no such file"),
    ],
)
def test_bad_input_is_told_in_words(repository: Path, arguments: tuple[str, ...], words: str) -> None:
    done = kdoctor("checklist", "diff", *arguments, cwd=repository)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_a_base_outside_of_a_repository_is_told(repository: Path) -> None:
    shutil.rmtree(repository / ".git")
    done = kdoctor("checklist", "diff", "ci/node.yaml", "--base", "main", cwd=repository, GIT_CEILING_DIRECTORIES="/")
    assert done.returncode == 2
    assert "is in no git repository" in done.stderr


def test_a_checklist_that_the_base_has_not_is_new(repository: Path) -> None:
    (repository / "ci" / "new.yaml").write_text((repository / "ci" / "node.yaml").read_text())
    done = kdoctor("checklist", "diff", "ci/new.yaml", "--base", "main", "--fail-on", "loosened", cwd=repository)
    assert done.returncode == 0
    assert "the whole checklist is new" in done.stderr
    for form, start in (("markdown", "### kdoctor checklist: 1 tightened"), ("json", "{")):
        told = kdoctor("checklist", "diff", "ci/new.yaml", "--base", "main", "--format", form, cwd=repository).stdout
        assert told.startswith(start)
        assert "ci/new.yaml is not in main: the whole checklist is new" in told.replace("\\", "")


def test_as_an_external_diff_git_shows_meanings(repository: Path) -> None:
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
    assert "the schema is 'broken', so this is no checklist" in git(repository, "diff", "--ext-diff")
    node.unlink()
    assert "a checklist was removed" in git(repository, "diff", "--ext-diff")


def test_by_textconv_git_shows_neither_order_nor_comments(repository: Path) -> None:
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


def test_what_is_no_valid_checklist_git_shows_by_textconv_as_it_is(repository: Path) -> None:
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


def test_the_interpreter_of_these_tests_is_the_one_that_git_starts() -> None:
    assert KDOCTOR[0] == sys.executable
