from __future__ import annotations

import pytest

from helpers.facts import gpus, target, tensorflow
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.driver_for_cuda import driver_for_cuda


@pytest.mark.parametrize(
    ("cuda", "driver", "offered", "status"),
    [  # NVIDIA's minor-version compatibility, table 1: 11 needs 450.80.02, 12 needs 525.60.13, 13 needs 580.65.06
        ("12.5.1", "525.60.13", "12.0", Status.PASS),
        ("12.5.1", "580.105.08", "13.0", Status.PASS),
        ("12.5.1", "525.60.12", "11.8", Status.FAIL),
        ("12.5.1", "470.223.02", "11.4", Status.FAIL),
        ("11.8", "450.80.02", "11.0", Status.PASS),
        ("11.8", "450.80.01", "10.2", Status.FAIL),
        ("13.0.2", "575.57.08", "12.9", Status.FAIL),
        ("13.0.2", "580.65.06", "13.0", Status.PASS),
        ("13.0.2", "580.7", "12.9", Status.FAIL),
        ("12.5.1", "470.223.02", "12.4", Status.UNKNOWN),  # cuda-compat supports more than the module
        ("12.5.1", "470.223.02", None, Status.UNKNOWN),
        ("14.0", "580.65.06", "13.0", Status.UNKNOWN),
        (None, "580.65.06", "13.0", Status.PASS),  # the matrix has the CUDA of the 2.21.0 wheel
        ("12.5.1", None, "13.0", Status.UNKNOWN),
        ("12.5.1", "N/A", "13.0", Status.UNKNOWN),
    ],
)
def test_driver_is_compared_with_the_cuda_of_the_build(
    cuda: str | None, driver: str | None, offered: str | None, status: Status
) -> None:
    facts = (tensorflow(cuda_version=cuda), gpus(driver_version=driver, cuda_driver_version=offered), target())
    assert compute_check(driver_for_cuda, *facts).status is status


def test_finding_has_both_versions_and_a_rollback() -> None:
    facts = (tensorflow(), gpus(driver_version="470.223.02", cuda_driver_version="11.4"), target())
    finding = compute_check(driver_for_cuda, *facts).findings[0].finding
    assert finding.subject == "NVIDIA driver 470.223.02"
    assert "CUDA 12.5.1" in finding.observed
    assert "525.60.13" in finding.expected
    assert finding.remedy.commands == ("sudo apt-get install nvidia-driver-525", "sudo reboot")
    assert finding.remedy.look == ("kdoctor matrix --driver 470.223.02",)
    assert "nvidia-driver-470=470.223.02-*" in finding.rollback.commands[0]


def test_windows_driver_is_unknown() -> None:
    facts = (tensorflow(), gpus(driver_version="600.0"), target(platform="win-amd64"))
    assert compute_check(driver_for_cuda, *facts).status is Status.UNKNOWN


def test_build_that_is_not_in_the_matrix_is_unknown() -> None:
    facts = (tensorflow(version="2.99.0", cuda_version=None), gpus(), target())
    assert compute_check(driver_for_cuda, *facts).status is Status.UNKNOWN
