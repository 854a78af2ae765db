"""pre-commit installs the hooks from this repository and runs them."""

import re
from pathlib import Path

import pytest

from helpers.command import captured, environ
from helpers.integrations import ROOT, needs

pytestmark = [pytest.mark.services, *needs("pre-commit", "git")]

CHECKLIST = (ROOT / "checklists" / "kdoctor_checklists" / "cpu-smoke.yaml").read_text(encoding="utf-8")
MODEL_OUTSIDE_SCOPE = """\
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
with tf.distribute.MirroredStrategy().scope():
    model.compile(loss="mse")
"""


def git(folder: Path, *arguments: str) -> str:
    command = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", *arguments]
    done = captured(command, check=True, cwd=folder, env=environ())
    return done.stdout.strip()


def test_hooks_pass_and_fail_in_another_repository(tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(ROOT), "kdoctor")
    git(tmp_path, "init", "--quiet", "other")
    other = tmp_path / "other"
    (other / ".pre-commit-config.yaml").write_text(
        f"repos: [{{repo: {tmp_path}/kdoctor, rev: {git(tmp_path / 'kdoctor', 'rev-parse', 'HEAD')}, hooks: "
        "[{id: kdoctor-checklist, files: '^ci/.*-node\\.yaml$'}, {id: kdoctor-lint}]}]\n",
        encoding="utf-8",
    )
    (other / "ci").mkdir()
    env = environ(PRE_COMMIT_HOME=str(tmp_path / "home"))

    def hooks(checklist: str, code: str) -> tuple[int, str]:
        (other / "ci" / "gpu-node.yaml").write_text(checklist, encoding="utf-8")
        (other / "train.py").write_text(code, encoding="utf-8")
        git(other, "add", ".")
        command = ["pre-commit", "run", "--all-files", "--color=never"]
        done = captured(command, cwd=other, env=env)
        return done.returncode, done.stdout

    code, output = hooks(CHECKLIST, "print('no Keras')\n")
    assert (code, output.count("Passed")) == (0, 2), output
    code, output = hooks(f"{CHECKLIST}chekcs: []\n", MODEL_OUTSIDE_SCOPE)
    assert (code, output.count("Failed")) == (1, 2), output
    assert re.search(rf"gpu-node\.yaml:{len(CHECKLIST.splitlines()) + 1}:1: .*'chekcs'.*'checks'", output)
    assert "train.py:2:9: error: KD101 lint.model-outside-scope" in output
