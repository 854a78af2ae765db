from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import gpu, gpus, h100_node, target, tensorflow
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup
from kdoctor.matrix.load import load_matrix
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.driver_for_ptx import driver_for_ptx


def judged(*facts: FactGroup, driver: str | None, offered: str | None = "12.2", capability: str = "10.0") -> Result:
    found = gpus(1, gpu(0, compute_capability=capability), driver_version=driver, cuda_driver_version=offered)
    return compute_check(driver_for_ptx, *h100_node(1), found, *facts)


@pytest.mark.parametrize(
    ("driver", "offered", "status"),
    [  # PTX 8.5 came with CUDA 12.5, and that with 555.42.02 (PTX ISA; CUDA release notes, table 3)
        ("555.42.02", "12.5", Status.PASS),
        ("580.65.06", "13.0", Status.PASS),
        ("555.42.01", "12.4", Status.FAIL),
        ("535.161.08", "12.2", Status.FAIL),
        ("535.161.08", "12.5", Status.UNKNOWN),  # cuda-compat brings a newer user-space driver
        (None, "12.2", Status.UNKNOWN),
        ("N/A", "12.2", Status.UNKNOWN),
    ],
)
def test_ptx_needs_the_driver_of_its_toolkit(driver: str | None, offered: str | None, status: Status) -> None:
    assert judged(driver=driver, offered=offered).status is status


def test_machine_code_needs_no_newer_driver() -> None:
    assert judged(driver="535.161.08", capability="8.0").status is Status.PASS


@pytest.mark.parametrize(
    ("version", "driver", "status"),
    [  # PTX of the generated kernels, which have no machine code for Hopper: read from the wheels
        ("2.21.0", "535.161.08", Status.FAIL),
        ("2.20.0", "550.54.15", Status.FAIL),
        ("2.19.1", "555.42.02", Status.PASS),
        ("2.18.1", "535.161.08", Status.FAIL),
        ("2.18.1", "545.23.06", Status.PASS),
        ("2.16.2", "525.60.13", Status.PASS),
    ],
)
def test_generated_kernels_have_only_ptx_for_hopper(version: str, driver: str, status: Status) -> None:
    release = load_matrix(environ={}).release(version)
    assert release is not None
    built = (*(f"sm_{number}" for number in release.cubins[:-1]), f"compute_{release.cubins[-1]}")
    build = tensorflow(version=version, cuda_version=release.cuda, compute_capabilities=built)
    assert judged(build, driver=driver, capability="9.0").status is status


def test_own_build_needs_the_first_driver_of_its_cuda() -> None:
    """A build that the matrix does not list may have any PTX up to that of its CUDA."""
    own: dict[str, Any] = {"compute_capabilities": ("sm_80", "compute_80"), "version": "2.15.1"}
    build = tensorflow(cuda_version="12.2", **own)  # 12.2.0 came with 535.54.03
    assert judged(build, driver="535.54.03", offered="12.2", capability="9.0").status is Status.PASS
    assert judged(build, driver="535.43.02", offered="12.1", capability="9.0").status is Status.FAIL
    assert judged(build, driver="530.30.02", offered="12.1", capability="9.0").status is Status.FAIL


def test_h100_on_535_gets_the_package_and_the_release_that_run() -> None:
    """cuda-compat-12-5 works on branch 535 and data-center GPUs; 2.16.2 has PTX 8.0 for Hopper."""
    remedy = judged(driver="535.161.08", capability="9.0").findings[0].finding.remedy
    (command,) = remedy.commands
    assert command.endswith("-m pip install 'tensorflow[and-cuda]==2.16.2' 'keras>=3.10'")
    assert "cuda-compat-12-5" in remedy.summary
    assert "driver 555.42.02" in remedy.summary


def test_finding_has_the_driver_and_a_rollback() -> None:
    finding = judged(driver="535.161.08").findings[0].finding
    assert "555.42.02" in finding.expected
    assert "sudo apt-get install nvidia-driver-555" in finding.remedy.commands
    assert "nvidia-driver-535=535.161.08-*" in finding.rollback.commands[0]


def test_missing_evidence_is_unknown() -> None:
    unknown = tensorflow(version="2.99.0", cuda_version=None, compute_capabilities=())
    assert judged(unknown, driver="580.65.06").status is Status.UNKNOWN
    future = tensorflow(version="2.99.0", cuda_version="14.0")
    assert judged(future, driver="580.65.06").status is Status.UNKNOWN
    assert judged(driver="580.65.06", capability="ten").status is Status.UNKNOWN
    assert judged(target(platform="win-amd64"), driver="580.65.06").status is Status.UNKNOWN
    assert compute_check(driver_for_ptx, *h100_node(), gpus(0, devices=(), count=0)).status is Status.UNKNOWN
