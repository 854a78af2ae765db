"""The linters and schemas of other systems find nothing in the files for them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from helpers.integrations import FOLDER, ROOT, tool

pytestmark = pytest.mark.services

WORKFLOW = ROOT / ".github" / "workflows" / "kdoctor.yml"


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (("actionlint",), WORKFLOW),
        (("check-jsonschema", "--builtin-schema", "vendor.github-workflows"), WORKFLOW),
        (("check-jsonschema", "--builtin-schema", "vendor.github-actions"), ROOT / "action.yml"),
        (("check-jsonschema", "--builtin-schema", "vendor.gitlab-ci"), FOLDER / "gitlab.yml"),
        (("pre-commit", "validate-manifest"), ROOT / ".pre-commit-hooks.yaml"),
        (("kubernetes-validate", "--strict"), FOLDER / "kubernetes-pod.yaml"),
        (("kubeconform", "-strict"), FOLDER / "kubernetes-pod.yaml"),
        (("shellcheck",), FOLDER / "slurm-prolog.sh"),
        (("promtool", "check", "rules"), FOLDER / "prometheus-alerts.yml"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_its_own_linter_finds_nothing(words: tuple[str, ...], file: Path) -> None:
    program = tool(words[0])
    if program is None:
        pytest.skip(f"not installed here: {words[0]}")
    done = subprocess.run([program, *words[1:], str(file)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
