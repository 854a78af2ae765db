from __future__ import annotations

import pytest

from helpers.facts import environment, h100_node, host, kernel
from helpers.facts.libraries import libraries, library, missing, no_libraries
from helpers.judging import compute_check
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, LibraryCopy
from kdoctor.model import Action, Status
from kdoctor_checks.driver.libcuda_found import libcuda_found


def judged(*facts: FactGroup) -> Result:
    return compute_check(libcuda_found, *h100_node(1), *facts)


def test_one_of_the_modules_version_is_well() -> None:
    assert judged().status is Status.PASS


@pytest.mark.parametrize(
    ("container", "command"),
    [("none", "sudo apt-get install 'libnvidia-compute-<branch>'"), ("docker", "NVIDIA_DRIVER_CAPABILITIES=compute")],
)
def test_a_missing_one_is_told_with_the_places_where_it_lies(container: str, command: str) -> None:
    stub = LibraryCopy(path="/usr/local/cuda/compat/libcuda.so.1", found_by="not searched")
    finding = judged(libraries(missing("cuda", other_copies=(stub,))), host(container=container)).findings[0].finding
    assert finding.subject == "libcuda.so.1"
    assert finding.observed == f"missing; not searched: {stub.path}"
    assert command in " ".join(finding.remedy.commands)


def test_one_of_another_version_on_the_path_is_taken_off_it() -> None:
    strange = library("cuda", version="570.86.15", path="/opt/old/libcuda.so.1", found_by="LD_LIBRARY_PATH")
    finding = judged(libraries(strange), environment(LD_LIBRARY_PATH="/opt/old:/keep")).findings[0].finding
    assert "of driver 570.86.15" in finding.observed
    assert finding.remedy.commands == ("export LD_LIBRARY_PATH=/keep",)
    assert finding.rollback.commands == ("export LD_LIBRARY_PATH=/opt/old:/keep",)


def test_one_of_another_version_on_the_system_needs_a_restart() -> None:
    finding = judged(libraries(library("cuda", version="590.44.01"))).findings[0].finding
    assert finding.remedy.action is Action.REBOOT


def test_one_for_forward_compatibility_is_left_to_its_own_check() -> None:
    assert judged(libraries(library("cuda", version="590.44.01"), driver_is_compat=True)).status is Status.PASS


def test_versions_that_cannot_be_read_are_no_pass() -> None:
    assert judged(libraries(driver_version=None)).status is Status.UNKNOWN
    assert judged(kernel(version=None)).status is Status.UNKNOWN


def test_a_build_without_cuda_opens_none() -> None:
    assert judged(no_libraries()).status is Status.SKIP
