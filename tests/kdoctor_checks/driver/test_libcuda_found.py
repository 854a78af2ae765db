from __future__ import annotations

import pytest

from helpers.facts import environment, h100_node, host, kernel
from helpers.facts.libraries import libraries, library, missing, no_libraries
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, LibraryCopy
from kdoctor.model import Action, Status
from kdoctor.testing import compute_check
from kdoctor_checks.driver.libcuda_found import libcuda_found


def judged(*facts: FactGroup) -> Result:
    return compute_check(libcuda_found, *h100_node(1), *facts)


def test_version_of_the_module_passes() -> None:
    assert judged().status is Status.PASS


@pytest.mark.parametrize(
    ("container", "command"),
    [("none", "sudo apt-get install libnvidia-compute-580"), ("docker", "NVIDIA_DRIVER_CAPABILITIES=compute")],
)
def test_missing_libcuda_fails_with_the_copies_that_are_not_searched(container: str, command: str) -> None:
    stub = LibraryCopy(path="/usr/local/cuda/compat/libcuda.so.1", found_by="not searched")
    finding = judged(libraries(missing("cuda", other_copies=(stub,))), host(container=container)).findings[0].finding
    assert finding.subject == "libcuda.so.1"
    assert stub.path in finding.observed
    assert command in " ".join(finding.remedy.commands)


def test_other_version_on_the_search_path_is_removed_from_it() -> None:
    other = library("cuda", version="570.86.15", path="/opt/old/libcuda.so.1", found_by="LD_LIBRARY_PATH")
    finding = judged(libraries(other), environment(LD_LIBRARY_PATH="/opt/old:/keep")).findings[0].finding
    assert "570.86.15" in finding.observed
    assert finding.remedy.commands == ("export LD_LIBRARY_PATH=/keep",)
    assert finding.rollback.commands == ("export LD_LIBRARY_PATH=/opt/old:/keep",)


def test_other_version_on_the_system_needs_a_restart() -> None:
    finding = judged(libraries(library("cuda", version="590.44.01"))).findings[0].finding
    assert finding.remedy.action is Action.REBOOT


def test_forward_compatibility_is_judged_by_another_check() -> None:
    assert judged(libraries(library("cuda", version="590.44.01"), driver_is_compat=True)).status is Status.PASS


def test_unread_versions_are_unknown() -> None:
    assert judged(libraries(driver_version=None)).status is Status.UNKNOWN
    assert judged(kernel(version=None)).status is Status.UNKNOWN


def test_build_without_cuda_is_skipped() -> None:
    assert judged(no_libraries()).status is Status.SKIP
