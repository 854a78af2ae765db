from __future__ import annotations

from helpers.facts import PYTHON, package, packages, target, tensorflow
from kdoctor.model import Assumptions, GpuAssumption, Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.cuda_build import cuda_build


def test_cpu_build_is_replaced_by_the_same_version() -> None:
    build = tensorflow(distribution="tensorflow-cpu", cuda_build=False, cuda_version=None)
    result = compute_check(cuda_build, build, packages(package("tensorflow-cpu", "2.21.0")), target())
    assert result.status is Status.FAIL
    finding = result.findings[0].finding
    assert finding.remedy.commands == (
        f"{PYTHON} -m pip uninstall -y tensorflow-cpu",
        f"{PYTHON} -m pip install 'tensorflow[and-cuda]==2.21.0'",
    )
    assert finding.rollback.commands == (f"{PYTHON} -m pip install tensorflow-cpu==2.21.0",)


def test_cuda_build_passes() -> None:
    result = compute_check(cuda_build, tensorflow(), packages(), target())
    assert result.status is Status.PASS
    assert "12.5.1" in result.evidence[0].observed


def test_build_that_does_not_state_cuda_is_unknown() -> None:
    result = compute_check(cuda_build, tensorflow(cuda_build=None, unreadable="no build_info.py"), packages(), target())
    assert (result.status, result.reason) == (Status.UNKNOWN, "tensorflow 2.21.0: no build_info.py")


def test_checklist_without_gpus_skips_the_check() -> None:
    none = Assumptions(gpus=GpuAssumption(count=0))
    result = compute_check(cuda_build, tensorflow(cuda_build=False), packages(), target(), assumptions=none)
    assert result.status is Status.SKIP


def test_platform_without_cuda_wheels_gets_a_container() -> None:
    arm = target(platform="linux-aarch64")
    result = compute_check(cuda_build, tensorflow(cuda_build=False), packages(), arm)
    finding = result.findings[0].finding
    assert finding.remedy.commands[0].startswith("docker run --gpus all ")
    assert finding.rollback.kind == "nothing"
