"""pre-commit itself installs the hooks from this repository and runs them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from helpers.command import environ
from helpers.integrations import ROOT, needs

pytestmark = [pytest.mark.services, *needs("pre-commit", "git")]

RIGHT = (ROOT / "checklists" / "kdoctor_checklists" / "cpu-smoke.yaml").read_text(encoding="utf-8")
WRONG_CODE = """\
import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
with tf.distribute.MirroredStrategy().scope():
    model.compile(loss="mse")
"""


def git(folder: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    done = subprocess.run(["git", *who, *words], check=True, capture_output=True, text=True, cwd=folder, env=environ())
    return done.stdout.strip()


def test_the_hooks_pass_and_fail_in_a_strangers_repository(tmp_path: Path) -> None:
    git(tmp_path, "clone", "--quiet", str(ROOT), "kdoctor")
    git(tmp_path, "init", "--quiet", "theirs")
    theirs = tmp_path / "theirs"
    (theirs / ".pre-commit-config.yaml").write_text(
        f"repos: [{{repo: {tmp_path}/kdoctor, rev: {git(tmp_path / 'kdoctor', 'rev-parse', 'HEAD')}, hooks: "
        "[{id: kdoctor-checklist, files: '^ci/.*-node\\.yaml$'}, {id: kdoctor-lint}]}]\n",
        encoding="utf-8",
    )
    (theirs / "ci").mkdir()
    env = environ(PRE_COMMIT_HOME=str(tmp_path / "home"))

    def hooks(checklist: str, code: str) -> tuple[int, str]:
        (theirs / "ci" / "gpu-node.yaml").write_text(checklist, encoding="utf-8")
        (theirs / "train.py").write_text(code, encoding="utf-8")
        git(theirs, "add", ".")
        command = ["pre-commit", "run", "--all-files", "--color=never"]
        done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=theirs, env=env)
        return done.returncode, done.stdout

    code, told = hooks(RIGHT, "print('nothing of Keras')\n")
    assert (code, told.count("Passed")) == (0, 2), told
    code, told = hooks(f"{RIGHT}chekcs: []\n", WRONG_CODE)
    assert (code, told.count("Failed")) == (1, 2), told
    assert "unknown key 'chekcs'; did you mean 'checks'?" in told
    assert "train.py:2:9: error: lint.model-outside-scope" in told
