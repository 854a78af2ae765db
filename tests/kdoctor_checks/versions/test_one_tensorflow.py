from __future__ import annotations

from helpers.facts import PYTHON, package, packages, target, tensorflow
from helpers.judging import compute_check
from kdoctor.engine.report import Result
from kdoctor.facts import Package
from kdoctor.model import Status
from kdoctor_checks.versions.one_tensorflow import one_tensorflow


def judged(*installed: Package, distribution: str = "tensorflow") -> Result:
    build = tensorflow(distribution=distribution, cuda_build=distribution == "tensorflow")
    return compute_check(one_tensorflow, packages(*installed), build, target())


def test_one_is_well() -> None:
    assert judged(package("tensorflow", "2.21.0")).status is Status.PASS


def test_two_that_share_a_folder_are_told_with_the_way_to_one() -> None:
    result = judged(package("tensorflow", "2.21.0"), package("tensorflow-cpu", "2.20.0"))
    assert result.status is Status.FAIL
    finding = result.findings[0].finding
    assert finding.observed == "2 distributions: tensorflow 2.21.0, tensorflow-cpu 2.20.0"
    assert finding.remedy.commands == (
        f"{PYTHON} -m pip uninstall -y tensorflow tensorflow-cpu",
        f"{PYTHON} -m pip install 'tensorflow[and-cuda]==2.21.0'",
    )
    assert finding.rollback.commands == (f"{PYTHON} -m pip install tensorflow==2.21.0 tensorflow-cpu==2.20.0",)


def test_leftovers_of_an_earlier_installation_are_told() -> None:
    result = judged(package("tensorflow", "2.21.0"), package("tensorflow", "2.19.1"))
    assert result.status is Status.FAIL
    commands = result.findings[0].finding.remedy.commands
    assert commands[:2] == (f"{PYTHON} -m pip uninstall -y tensorflow",) * 2


def test_a_leftover_without_a_version_has_no_way_back() -> None:
    result = judged(package("tensorflow", "2.21.0"), package("tf-nightly", None))
    assert "tf-nightly (no version in its metadata)" in result.findings[0].finding.observed
    assert result.findings[0].finding.rollback.kind == "irreversible"


def test_a_distribution_that_another_asks_for_is_no_second_one() -> None:
    outer = package("tensorflow", "2.15.1", 'tensorflow-intel==2.15.1; platform_system == "Windows"', "not a ( one")
    assert judged(outer, package("tensorflow-intel", "2.15.1")).status is Status.PASS


def test_a_build_for_the_cpu_is_installed_again_as_it_was() -> None:
    result = judged(
        package("tensorflow-cpu", "2.21.0"), package("tf-nightly-cpu", "2.22.0"), distribution="tensorflow-cpu"
    )
    assert result.findings[0].finding.remedy.commands[-1] == f"{PYTHON} -m pip install tensorflow-cpu==2.21.0"
