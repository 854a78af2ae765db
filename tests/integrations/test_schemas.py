"""The integration files pass the linters and schemas of their systems."""

import subprocess
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.integrations import FOLDER, ROOT, tool

pytestmark = pytest.mark.services

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


@cases(
    *((("actionlint",), workflow) for workflow in WORKFLOWS),
    *((("check-jsonschema", "--builtin-schema", "vendor.github-workflows"), workflow) for workflow in WORKFLOWS),
    (("hadolint",), ROOT / "Containerfile"),
    (("check-jsonschema", "--builtin-schema", "vendor.github-actions"), ROOT / "action.yml"),
    (("check-jsonschema", "--builtin-schema", "vendor.gitlab-ci"), FOLDER / "gitlab.yml"),
    (("pre-commit", "validate-manifest"), ROOT / ".pre-commit-hooks.yaml"),
    (("kubernetes-validate", "--strict"), FOLDER / "kubernetes-pod.yaml"),
    (("kubeconform", "-strict"), FOLDER / "kubernetes-pod.yaml"),
    (("shellcheck",), FOLDER / "slurm-prolog.sh"),
    (("shellcheck",), FOLDER / "slurm-health.sh"),
    (("shellcheck",), FOLDER / "slurm-job.sh"),
    (("shellcheck",), FOLDER / "npd-kdoctor.sh"),
    (("promtool", "check", "rules"), FOLDER / "prometheus-alerts.yml"),
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_linter_accepts_the_file(command: tuple[str, ...], file: Path) -> None:
    program = tool(command[0])
    if program is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run([program, *command[1:], str(file)], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
