from __future__ import annotations

from helpers.facts import PYTHON, SITE, environment, h100_node, package, packages, tensorflow
from helpers.facts.libraries import libraries, library, missing, no_libraries, without_wheels
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, LibraryCopy
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.cuda_libraries import cuda_libraries_load


def judged(*facts: FactGroup) -> Result:
    return compute_check(cuda_libraries_load, *h100_node(1), *facts)


def test_plain_tensorflow_gives_one_finding_for_all_libraries() -> None:
    result = judged(without_wheels())
    (item,) = result.findings
    assert item.finding.subject == "CUDA libraries"
    for soname in ("libcudart.so.12", "libcublasLt.so.12", "libcusolver.so.11", "libcudnn.so.9"):
        assert soname in item.finding.observed
    assert "libnccl" not in item.finding.observed  # it is not needed for a GPU
    assert item.finding.remedy.commands == (f"{PYTHON} -m pip install 'tensorflow[and-cuda]==2.21.0'",)
    assert "versions.libraries-searched" in item.finding.remedy.summary
    assert item.finding.brief.startswith("none of the 7 ")
    assert item.finding.rollback.commands == (f"{PYTHON} -m pip install tensorflow==2.21.0",)


def test_libraries_of_another_cuda_are_named() -> None:
    other = f"{SITE}/nvidia/cu13/lib/libcudart.so.13"
    finding = judged(libraries(missing("cudart", other_versions=(other,)))).findings[0].finding
    assert other in finding.observed


def test_release_without_the_extra_needs_libraries_of_the_system() -> None:
    build = tensorflow(version="2.12.1", cuda_version="11.8", cudnn_version="8")
    finding = judged(build, without_wheels()).findings[0].finding
    assert "CUDA 11.8" in finding.remedy.summary
    assert "cuDNN 8.6" in finding.remedy.summary
    assert (finding.remedy.commands, finding.remedy.look) == ((), ("kdoctor matrix",))


def test_library_that_does_not_load_fails_with_the_error_of_the_loader() -> None:
    error = "undefined symbol: cublasSetEnvironmentMode"
    installed = packages(package("tensorflow", "2.21.0"), package("nvidia-cublas-cu12", "12.5.3.2"))
    finding = judged(libraries(library("cusolver", load_error=error)), installed).findings[0].finding
    assert finding.subject == "libcusolver.so.11"
    assert error in finding.observed
    assert finding.rollback.commands == (f"{PYTHON} -m pip install tensorflow==2.21.0 nvidia-cublas-cu12==12.5.3.2",)


def test_folder_of_a_broken_copy_is_removed_from_the_search_path() -> None:
    broken = library(
        "cudnn", status="unusable", path="/opt/old/libcudnn.so.9", found_by="LD_LIBRARY_PATH", package=None,
        package_version=None, version=None, load_error="file too short",
    )  # fmt: skip
    finding = judged(libraries(broken), environment(LD_LIBRARY_PATH="/opt/old/:/keep")).findings[0].finding
    assert finding.remedy.commands[0] == "export LD_LIBRARY_PATH=/keep"


def test_libraries_outside_the_search_path_are_judged_by_another_check() -> None:
    outside = LibraryCopy(path=f"{SITE}/nvidia/cusolver/lib/libcusolver.so.11", found_by="not searched")
    assert judged(libraries(missing("cusolver", other_copies=(outside,)))).status is Status.PASS


def test_build_without_cuda_is_skipped() -> None:
    assert judged(no_libraries()).status is Status.SKIP
