from __future__ import annotations

import pytest

from helpers.facts import PYTHON, package, packages, target, tensorflow
from kdoctor.facts import TensorFlowBuild
from kdoctor.model import Assumptions, GpuAssumption, Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.tensorflow_installed import tensorflow_installed


def test_missing_tensorflow_fails_with_the_command_that_installs_it() -> None:
    result = compute_check(
        tensorflow_installed, TensorFlowBuild(installed=False), packages(package("numpy", "2.4.6")), target()
    )
    assert result.status is Status.FAIL
    finding = result.findings[0].finding
    assert finding.remedy.commands == (f"{PYTHON} -m pip install 'tensorflow[and-cuda]'",)
    assert finding.rollback.commands == (f"{PYTHON} -m pip uninstall -y tensorflow",)


def test_environment_without_pip_gets_a_uv_command() -> None:
    facts = (TensorFlowBuild(installed=False), packages(package("numpy", "2.4.6"), has_pip=False), target())
    finding = compute_check(tensorflow_installed, *facts).findings[0].finding
    assert finding.remedy.commands == (f"uv pip install --python {PYTHON} 'tensorflow[and-cuda]'",)
    assert finding.rollback.commands == (f"uv pip uninstall --python {PYTHON} tensorflow",)


def test_installed_tensorflow_passes_with_its_version() -> None:
    result = compute_check(tensorflow_installed, tensorflow(), packages(), target())
    assert result.status is Status.PASS
    assert result.evidence[0].observed == "tensorflow 2.21.0"


@pytest.mark.parametrize("version", [None, "", "two", "2.21.0-final-really"])
def test_invalid_version_is_unknown(version: str | None) -> None:
    assert (
        compute_check(tensorflow_installed, tensorflow(version=version), packages(), target()).status is Status.UNKNOWN
    )


@pytest.mark.parametrize(("count", "platform"), [(0, "linux-x86_64"), (2, "linux-aarch64"), (2, "macosx-14.0-arm64")])
def test_cuda_libraries_are_installed_only_where_they_exist_and_are_needed(count: int, platform: str) -> None:
    facts = (TensorFlowBuild(installed=False), packages(package("numpy", "2.4.6")), target(platform=platform))
    assumptions = Assumptions(gpus=GpuAssumption(count=count))
    finding = compute_check(tensorflow_installed, *facts, assumptions=assumptions).findings[0].finding
    assert finding.remedy.commands == (f"{PYTHON} -m pip install tensorflow",)
