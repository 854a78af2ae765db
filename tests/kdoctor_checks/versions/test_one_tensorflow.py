from __future__ import annotations

from helpers.facts import PYTHON, package, packages, target, tensorflow
from kdoctor.engine.report import Result
from kdoctor.facts import Package
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.one_tensorflow import one_tensorflow


def judged(*installed: Package, distribution: str = "tensorflow") -> Result:
    build = tensorflow(distribution=distribution, cuda_build=distribution == "tensorflow")
    return compute_check(one_tensorflow, packages(*installed), build, target())


def test_one_distribution_passes() -> None:
    assert judged(package("tensorflow", "2.21.0")).status is Status.PASS


def test_two_distributions_in_one_folder_are_replaced_by_one() -> None:
    result = judged(package("tensorflow", "2.21.0"), package("tensorflow-cpu", "2.20.0"))
    assert result.status is Status.FAIL
    finding = result.findings[0].finding
    assert finding.observed.startswith("2 ")
    assert finding.observed.endswith(": tensorflow 2.21.0, tensorflow-cpu 2.20.0")
    assert finding.remedy.commands == (
        f"{PYTHON} -m pip uninstall -y tensorflow tensorflow-cpu",
        f"{PYTHON} -m pip install tensorflow==2.21.0",
    )
    assert finding.rollback.commands == (f"{PYTHON} -m pip install tensorflow==2.21.0 tensorflow-cpu==2.20.0",)


def test_leftovers_of_an_earlier_installation_fail() -> None:
    result = judged(package("tensorflow", "2.21.0"), package("tensorflow", "2.19.1"))
    assert result.status is Status.FAIL
    finding = result.findings[0].finding
    assert finding.subject == "tensorflow"
    assert finding.remedy.commands == (  # pip removes one copy at a time
        f"for copy in 1 2; do {PYTHON} -m pip uninstall -y tensorflow; done",
        f"{PYTHON} -m pip install tensorflow==2.21.0",
    )


def test_nvidia_wheels_are_kept() -> None:
    wheel = package("nvidia-cudnn-cu12", "9.3.0.75")
    result = judged(wheel, package("tensorflow", "2.21.0"), package("tensorflow-cpu", "2.21.0"))
    finding = result.findings[0].finding
    assert finding.subject == "tensorflow and tensorflow-cpu"
    assert finding.remedy.commands[-1] == f"{PYTHON} -m pip install 'tensorflow[and-cuda]==2.21.0'"


def test_leftover_without_a_version_cannot_be_restored() -> None:
    result = judged(package("tensorflow", "2.21.0"), package("tf-nightly", None))
    assert "tf-nightly (" in result.findings[0].finding.observed
    assert result.findings[0].finding.rollback.kind == "irreversible"


def test_required_distribution_does_not_count_as_a_second_one() -> None:
    outer = package("tensorflow", "2.15.1", 'tensorflow-intel==2.15.1; platform_system == "Windows"', "not a ( one")
    assert judged(outer, package("tensorflow-intel", "2.15.1")).status is Status.PASS


def test_cpu_build_is_kept() -> None:
    result = judged(
        package("tensorflow-cpu", "2.21.0"), package("tf-nightly-cpu", "2.22.0"), distribution="tensorflow-cpu"
    )
    assert result.findings[0].finding.remedy.commands[-1] == f"{PYTHON} -m pip install tensorflow-cpu==2.21.0"


def test_copied_tensorflow_without_metadata_is_unknown() -> None:
    assert judged(package("numpy", "2.4.6")).status is Status.UNKNOWN
