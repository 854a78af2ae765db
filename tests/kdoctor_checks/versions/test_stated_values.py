"""The versions and packages that the checks of versions state, and those that their commands install."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from helpers.facts import PYTHON, environment, gpu, gpus, h100_node, keras, package, packages, target, tensorflow
from helpers.facts.libraries import SOLVER_FOLDER, libraries, library, missing, no_libraries
from helpers.saying import briefs, said
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, LibraryCopy, XlaFile
from kdoctor.matrix.load import loads, shipped_matrix, shipped_text
from kdoctor.model import Action, Assumptions, Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions._libraries import pinned, shown, with_libraries
from kdoctor_checks.versions.cuda_libraries import cuda_libraries_load
from kdoctor_checks.versions.cuda_libraries_match import cuda_libraries_match
from kdoctor_checks.versions.cudnn_for_build import cudnn_for_build
from kdoctor_checks.versions.cudnn_for_gpus import cudnn_for_gpus
from kdoctor_checks.versions.driver_for_cuda import driver_for_cuda
from kdoctor_checks.versions.driver_for_ptx import driver_for_ptx
from kdoctor_checks.versions.gpu_code import gpu_code
from kdoctor_checks.versions.keras_compatible import keras_compatible
from kdoctor_checks.versions.known_bad import known_bad
from kdoctor_checks.versions.known_hazards import known_hazards
from kdoctor_checks.versions.libraries_searched import libraries_searched
from kdoctor_checks.versions.one_tensorflow import one_tensorflow
from kdoctor_checks.versions.python_supported import python_supported
from kdoctor_checks.versions.runtime_expected import runtime_expected
from kdoctor_checks.versions.tensorflow_installed import tensorflow_installed
from kdoctor_checks.versions.xla_files import xla_files

NIGHTLY = {"distribution": "tf-nightly", "version": "2.21.0"}
INSTALLED = packages(package("tf-nightly", "2.21.0"), package("numpy", "1.26.4"), package("keras", "3.15.1"))


def outside() -> FactGroup:
    copy = LibraryCopy(path=f"{SOLVER_FOLDER}/libcusolver.so.11", found_by="not searched")
    return libraries(missing("cusolver", other_copies=(copy,)))


@pytest.mark.parametrize(
    ("check", "facts"),
    [
        (gpu_code, (tensorflow(**NIGHTLY), gpus(1, gpu(0, compute_capability="5.2")))),
        (libraries_searched, (tensorflow(**NIGHTLY | {"version": "2.16.1"}), outside())),
    ],
)
def test_rollback_restores_the_distribution_that_is_installed(check: Any, facts: tuple[FactGroup, ...]) -> None:
    (found,) = compute_check(check, *h100_node(1), INSTALLED, *facts).findings
    assert found.finding.rollback.commands == (f"{PYTHON} -m pip install tf-nightly==2.21.0",)


def test_known_bad_combination_names_the_distribution_that_is_installed() -> None:
    """NumPy 2 with a TensorFlow that was built for NumPy 1 (the row numpy2_abi)."""
    old = packages(package("tensorflow-cpu", "2.17.1"), package("numpy", "2.2.6"))
    facts = old, tensorflow(distribution="tensorflow-cpu", version="2.17.1", cuda_build=False), target()
    (found,) = compute_check(known_bad, *facts).findings
    assert found.finding.subject == "tensorflow-cpu 2.17.1 with numpy 2.2.6"
    assert found.finding.rollback.commands == (f"{PYTHON} -m pip install tensorflow-cpu==2.17.1 numpy==2.2.6",)
    assert found.finding.expected.startswith("not tensorflow<2.18 with numpy>=2")
    nameless = compute_check(known_bad, old, tensorflow(distribution=None, version="2.17.1"), target())
    assert nameless.findings[0].finding.subject.startswith("tensorflow ")


def test_requirement_with_libraries_has_the_extra_where_the_release_has_it() -> None:
    matrix = shipped_matrix()
    with_extra = next(row for row in matrix.releases if row.and_cuda is not None)
    without = next(row for row in matrix.releases if row.and_cuda is None)
    build = tensorflow(distribution="tf-nightly", version="2.21.0")
    assert with_libraries(build, with_extra) == "tf-nightly[and-cuda]==2.21.0"
    assert with_libraries(build, None) == "tf-nightly[and-cuda]==2.21.0"
    assert with_libraries(build, without) == "tf-nightly==2.21.0"
    assert with_libraries(tensorflow(distribution=None, version=None), None) == "tensorflow[and-cuda]"
    assert pinned(without, "nvidia-cudnn-cu12") is None
    assert pinned(None, "nvidia-cudnn-cu12") is None


def test_library_is_shown_with_its_package() -> None:
    assert shown(library("cudnn")) == "libcudnn.so.9 9.24.0 (nvidia-cudnn-cu12 9.24.0.43)"
    assert shown(library("cudnn", package=None)) == "libcudnn.so.9 9.24.0"
    assert shown(library("cudnn", package=None, version=None, soname=None)) == "cudnn (version unknown)"


def cudnn(*facts: FactGroup, **changes: Any) -> Result:
    return compute_check(cudnn_for_build, *h100_node(1), libraries(library("cudnn", **changes)), *facts)


UNLISTED = {"version": "2.99.0", "cudnn_version": "9.3"}


@pytest.mark.parametrize(
    ("build", "package_name", "wanted"),
    [
        (UNLISTED, "nvidia-cudnn-cu12", "nvidia-cudnn-cu12>=9.3,<10"),
        ({**UNLISTED, "cuda_version": "13.0"}, "nvidia-cudnn-cu13", "nvidia-cudnn-cu13>=9.3,<10"),
        ({**UNLISTED, "cuda_version": "13.0"}, None, "nvidia-cudnn-cu13>=9.3,<10"),
        ({**UNLISTED, "cuda_version": None}, None, "nvidia-cudnn-cu12>=9.3,<10"),
    ],
)
def test_wheel_of_an_unlisted_release_is_of_the_same_cuda(
    build: dict[str, Any], package_name: str | None, wanted: str
) -> None:
    result = cudnn(tensorflow(**build), version="8.9.7", package=package_name)
    (found,) = result.findings
    assert found.finding.remedy.commands == (f"{PYTHON} -m pip install '{wanted}'",)
    assert found.finding.expected == "cuDNN 9.3 or a later 9.x"


@pytest.mark.parametrize(
    ("change", "build", "reason"),
    [
        ({"version": None, "version_error": "it died"}, {}, "its version is unknown: it died"),
        ({"version": None, "load_error": "no symbol"}, {}, "its version is unknown: no symbol"),
        ({"version": None}, {}, "its version is unknown: not read"),
        ({}, {"version": "2.99.0", "cudnn_version": None}, "the cuDNN that TensorFlow was built with is unknown"),
        ({}, {"version": "2.99.0", "cudnn_version": "new"}, "the cuDNN that TensorFlow was built with is unknown"),
        ({}, {"version": "2.99.0"}, "9.24.0 has the required major version; the minor version"),
    ],
)
def test_reason_about_cudnn_is_stated(change: dict[str, Any], build: dict[str, Any], reason: str) -> None:
    assert said(cudnn(tensorflow(**build), **change))["libcudnn.so.9"].startswith(reason)


def test_cudnn_that_fits_is_stated_with_the_build() -> None:
    assert said(cudnn())["libcudnn.so.9"] == "9.24.0 (nvidia-cudnn-cu12 9.24.0.43), TensorFlow built with 9.3"
    assert compute_check(cudnn_for_build, *h100_node(1), no_libraries()).reason == no_libraries().note


def test_missing_libraries_are_explained_by_the_note() -> None:
    assert compute_check(libraries_searched, *h100_node(1), no_libraries()).reason == no_libraries().note
    bare = libraries(cuda_build=True, libraries=())
    assert "opens no CUDA library" in (compute_check(libraries_searched, *h100_node(1), bare).reason or "")


def test_searched_libraries_are_counted() -> None:
    assert said(compute_check(libraries_searched, *h100_node(1))) == {"search path": "RUNPATH covers 7 of 7 libraries"}
    one = libraries(missing("cusolver"), path_kind=None)
    result = compute_check(libraries_searched, *h100_node(1), one)
    assert said(result) == {"search path": "the loader covers 6 of 7 libraries"}
    found = briefs(compute_check(libraries_searched, *h100_node(1), outside()))
    assert found[0] == "does not search the folder of libcusolver.so.11"


def test_release_is_replaced_only_for_a_defect_that_hides_the_gpus() -> None:
    row = """
- id: another_defect
  when: {tensorflow: "==2.19.0"}
  effect: crash
  symptom: it crashes
  ended_by: {tensorflow: ">=2.19.1"}
  fix: tensorflow 2.19.1
  source: seen here
"""
    facts = (tensorflow(version="2.19.0"), outside(), environment())
    matrix = loads(shipped_text() + row.encode())
    (found,) = compute_check(libraries_searched, *h100_node(1), *facts, matrix=matrix).findings
    assert found.finding.remedy.commands[0].startswith("export LD_LIBRARY_PATH=")


def only(*installed: Any, **build: Any) -> Result:
    return compute_check(one_tensorflow, packages(*installed), tensorflow(**build), target())


def test_single_distribution_is_named() -> None:
    assert said(only(package("tensorflow", "2.21.0"))) == {
        "tensorflow": "the only TensorFlow distribution (tensorflow 2.21.0)"
    }
    mutual = package("tensorflow", "2.15.1", "tensorflow-intel"), package("tensorflow-intel", "2.15.1", "tensorflow")
    assert said(only(*mutual, version="2.15.1"))["tensorflow"].endswith(
        "(tensorflow 2.15.1, required by another distribution)"
    )


def test_requirement_after_an_invalid_one_is_read() -> None:
    outer = package("tensorflow", "2.15.1", "not a ( one", "tensorflow-intel==2.15.1")
    assert only(outer, package("tensorflow-intel", "2.15.1")).status is Status.PASS


@pytest.mark.parametrize(
    ("installed", "brief", "wanted"),
    [
        (("tensorflow", "tensorflow-cpu"), "2 TensorFlows, which overwrite", "tensorflow==2.21.0"),
        (("tf-nightly", "tensorflow-cpu"), "2 TensorFlows, which overwrite", "tf-nightly==2.21.0"),
        (("tensorflow", "tensorflow", "tensorflow"), "3 copies are installed", "tensorflow==2.21.0"),
        (("tensorflow", "tensorflow", "tensorflow-cpu"), "3 TensorFlows, which overwrite", "tensorflow==2.21.0"),
    ],
)
def test_distributions_are_counted(installed: tuple[str, ...], brief: str, wanted: str) -> None:
    (found,) = only(*(package(name, "2.21.0") for name in installed), distribution="tf-nightly").findings
    assert found.finding.headline.startswith(brief)
    removal, installation = found.finding.remedy.commands
    assert installation == f"{PYTHON} -m pip install {wanted}"
    copies = max(map(installed.count, installed))
    assert removal.startswith("for copy in " + " ".join(map(str, range(1, copies + 1))) + ";") == (copies > 1)


@pytest.mark.parametrize(
    ("where", "folder"), [("venv", "/opt/job-py3.13"), ("conda", "/opt/job-py3.13"), ("system", "venv-py3.13")]
)
def test_new_environment_has_the_newest_python(where: Any, folder: str) -> None:
    """TensorFlow 2.21 has wheels for Python 3.10 to 3.13."""
    installed = packages(package("tensorflow", "2.21.0", requires_python=">=3.10"))
    old = target(version="3.9.18", environment=where)
    (found,) = compute_check(python_supported, old, installed, tensorflow()).findings
    assert found.finding.remedy.commands[0] == f"uv venv --python 3.13 {folder}"
    assert found.finding.observed == f"not supported by tensorflow 2.21.0 ({PYTHON})"


def test_python_that_nothing_accepts_is_not_installed() -> None:
    installed = packages(package("tensorflow", "2.21.0", requires_python=">=3.10"))
    wanted = Assumptions(python="<3.9")
    result = compute_check(python_supported, target(version="3.11.7"), installed, tensorflow(), assumptions=wanted)
    (found,) = result.findings
    assert found.finding.remedy.commands == ()
    assert "<3.9" in found.finding.remedy.summary
    assert said(result)["Python for tensorflow 2.21.0"] == "Python 3.11.7 meets >=3.10"


@pytest.mark.parametrize(("key", "field"), [("cuda", "cuda_version"), ("cudnn", "cudnn_version")])
def test_sdk_that_is_not_known_is_unknown(key: str, field: str) -> None:
    build = tensorflow(version="2.99.0", **{field: None})
    result = compute_check(runtime_expected, *h100_node(1), build, assumptions=Assumptions(sdk={key: ">=9"}))
    assert [item.reason for item in result.unjudged] == ["neither the build nor the version matrix states it"]


@pytest.mark.parametrize(
    ("name", "brief", "observed"),
    [
        ("tensorflow", "TensorFlow 2.21.0", "tensorflow 2.21.0"),
        (None, "TensorFlow 2.21.0", "tensorflow 2.21.0"),
        ("tf-nightly", "tf-nightly 2.21.0", "tf-nightly 2.21.0"),
    ],
)
def test_installed_distribution_is_named(name: str | None, brief: str, observed: str) -> None:
    result = compute_check(tensorflow_installed, tensorflow(distribution=name), packages(), target())
    assert (briefs(result), list(said(result).values())) == ([brief], [observed])


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        ({"version": "two"}, "has version 'two'"),
        ({"version": None}, "has no version in its metadata"),
        ({"version": None, "unreadable": "gone"}, "has no version in its metadata: gone"),
        ({"version": None, "location": None}, "the package has no version"),
    ],
)
def test_reason_of_an_invalid_version_is_stated(build: dict[str, Any], reason: str) -> None:
    result = compute_check(tensorflow_installed, tensorflow(**build), packages(), target())
    assert reason in (result.reason or "")


def test_files_that_were_removed_are_installed_again() -> None:
    gone = tensorflow(installed=False)
    (found,) = compute_check(tensorflow_installed, gone, packages(package("tensorflow", "2.21.0")), target()).findings
    assert found.finding.remedy.commands == (f"{PYTHON} -m pip install --force-reinstall --no-deps tensorflow==2.21.0",)


def test_build_that_opens_no_files_of_xla_is_skipped() -> None:
    bare = compute_check(xla_files, *h100_node(1), libraries(xla_files=()))
    assert (bare.status, bare.reason) == (Status.SKIP, "this TensorFlow does not compile for GPUs")
    assert compute_check(xla_files, *h100_node(1), no_libraries()).reason == no_libraries().note


def test_release_that_was_measured_wrong_is_replaced_by_the_newest_right_one() -> None:
    rows = """
- id: measured_wrong
  when: {keras: "==3.99.0"}
  effect: wrong-results
  symptom: it trains incorrectly
  ended_by: {keras: ">=4"}
  fix: keras 4
  source: seen here
"""
    matrix = loads(shipped_text() + rows.encode())
    facts = keras(version="3.99.0"), packages(package("tensorflow", "2.21.0"), package("keras", "3.99.0")), target()
    (found,) = compute_check(keras_compatible, *facts, matrix=matrix).findings
    assert found.finding.remedy.commands == (f"{PYTHON} -m pip install 'keras>=4'",)
    assert found.finding.headline == "gives wrong results on several replicas"
    assert "it trains incorrectly" in found.finding.observed


def hazards(*facts: FactGroup) -> Result:
    return compute_check(known_hazards, *h100_node(1), *facts)


def test_list_of_hazards_counts_only_if_every_gpu_was_judged() -> None:
    good = libraries(library("cudnn", version="9.24.0", package_version="9.24.0.43"))
    subject = "tensorflow 2.21.0"
    assert said(hazards(good))[subject].startswith("not in the list of combinations that fail with some jobs (")
    other = gpus(2, gpu(0), gpu(1, compute_capability="12.0"))
    assert subject not in said(hazards(good, other))
    assert subject not in said(hazards(good, gpus(2, gpu(0), gpu(1, compute_capability=None))))
    bad = libraries(library("cudnn", version="9.5.1", package_version="9.5.1.17"))
    assert said(hazards(bad))[subject].startswith("fails with convolutions under XLA")
    unread = said(hazards(libraries(library("cudnn", version=None, package_version=None))))
    assert unread["libcudnn"] == "its version was not read"
    assert subject not in unread


@pytest.mark.parametrize("check", [known_hazards, known_bad])
def test_build_without_a_version_is_named(check: Any) -> None:
    result = compute_check(check, *h100_node(1), tensorflow(version=None))
    assert said(result) == {"tensorflow (version unknown)": "its version is not valid"}
    named = compute_check(check, *h100_node(1), tensorflow(version="two"))
    assert said(named) == {"tensorflow two": "its version is not valid"}


def test_fix_of_a_hazard_is_a_version_or_a_change_of_the_job() -> None:
    (found,) = hazards(gpus(1, gpu(0, compute_capability="12.0"))).findings
    assert found.finding.remedy.action is Action.CHANGE_CODE
    assert found.finding.remedy.summary[0].isupper()
    assert found.finding.remedy.commands == ()
    (found,) = hazards(libraries(library("cudnn", version="9.5.1", package_version="9.5.1.17"))).findings
    assert found.finding.remedy.action is Action.REINSTALL
    assert found.finding.remedy.summary.startswith("Install nvidia-cudnn-cu12 9.24.0.43")


_FIVE = ("cudart", "cublas", "cublasLt", "cufft", "cusparse")


@pytest.mark.parametrize(
    ("missing_ones", "brief"),
    [
        (("cudart",), "6 of the 7 that TensorFlow needs are installed"),
        (("cudart", "cublas", "cublasLt", "cufft", "cusparse"), "2 of the 7 that TensorFlow needs are installed"),
        (
            ("cudart", "cublas", "cublasLt", "cufft", "cusparse", "cudnn"),
            "1 of the 7 that TensorFlow needs is installed",
        ),
    ],
)
def test_installed_libraries_are_counted(missing_ones: tuple[str, ...], brief: str) -> None:
    result = compute_check(cuda_libraries_load, *h100_node(1), libraries(*map(missing, missing_ones)))
    assert briefs(result)[0] == brief


def test_library_that_does_not_load_is_removed_from_the_path_if_it_is_foreign() -> None:
    broken = {"status": "unusable", "load_error": "truncated"}
    foreign = {
        "package": None,
        "package_version": None,
        "found_by": "LD_LIBRARY_PATH",
        "path": "/opt/old/libcufft.so.11",
    }
    variables = environment(LD_LIBRARY_PATH="/opt/old")

    def judged(**changes: Any) -> Any:
        found = compute_check(
            cuda_libraries_load, *h100_node(1), variables, libraries(library("cufft", **broken, **changes))
        )
        return found.findings[0].finding

    outside_one = judged(**foreign)
    assert outside_one.observed == "/opt/old/libcufft.so.11 does not load: truncated"
    assert outside_one.remedy.summary.endswith(", and remove /opt/old from LD_LIBRARY_PATH.")
    assert outside_one.remedy.commands[0] == "unset LD_LIBRARY_PATH"
    wheel = judged()
    assert "LD_LIBRARY_PATH" not in wheel.remedy.summary
    assert len(wheel.remedy.commands) == 1


def test_libraries_outside_the_search_path_are_judged_by_another_check() -> None:
    copy = LibraryCopy(path=f"{SOLVER_FOLDER}/libx.so", found_by="not searched")
    names = ("cudart", "cublas", "cublasLt", "cufft", "cusolver", "cusparse", "cudnn")
    everything = libraries(*(missing(name, other_copies=(copy,)) for name in names))
    result = compute_check(cuda_libraries_load, *h100_node(1), everything)
    assert (result.status, "versions.libraries-searched" in (result.reason or "")) == (Status.SKIP, True)
    some_of_them = libraries(*(missing(name, other_copies=(copy,)) for name in names[:-1]), missing("cudnn"))
    assert compute_check(cuda_libraries_load, *h100_node(1), some_of_them).status is Status.FAIL


def ptx(driver: str | None, **changes: Any) -> Result:
    found = gpus(1, gpu(0, compute_capability="10.0"), driver_version=driver, **changes)
    return compute_check(driver_for_ptx, *h100_node(1), found)


@pytest.mark.parametrize("check", [driver_for_ptx, driver_for_cuda])
def test_unknown_driver_is_stated_with_the_error(check: Any) -> None:
    def reason(**changes: Any) -> str:
        found = gpus(1, gpu(0, compute_capability="10.0"), **changes)
        return compute_check(check, *h100_node(1), found).unjudged[0].reason

    unread = reason(driver_version=None, errors={"driver_version": "Unknown Error"})
    assert unread == "the driver version is unknown: Unknown Error"
    assert reason(driver_version="r570") == "the driver version is unknown: 'r570'"


def test_driver_that_compiles_ptx_is_stated() -> None:
    """PTX 8.5 came with CUDA 12.5, and that with driver 555.42.02."""
    subject = gpu(0).subject
    assert "driver 580.65.06 compiles it (555.42.02 and newer do)" in said(ptx("580.65.06"))[subject]
    old = said(ptx("535.161.08", cuda_driver_version="12.5"))[subject]
    assert old.endswith("is too old, but supports CUDA 12.5; cuda-compat may bridge the gap")
    ampere = gpus(1, gpu(0, compute_capability="8.0"))
    stated = said(compute_check(driver_for_ptx, *h100_node(1), ampere))[subject]
    assert stated == "machine code for 8.0; needs no PTX"


def test_code_that_is_not_known_has_a_reason() -> None:
    unlisted = tensorflow(version="2.99.0", compute_capabilities=(), cuda_version=None)
    for unreadable, reason in ((None, "neither the build nor"), ("gone", "gone")):
        build = replace(unlisted, unreadable=unreadable)
        ptx_reason = compute_check(driver_for_ptx, *h100_node(1), build).unjudged[0].reason
        assert reason in ptx_reason
        assert reason in compute_check(gpu_code, *h100_node(1), build).unjudged[0].reason
    code_alone = tensorflow(version="2.99.0", cuda_version=None)
    assert compute_check(driver_for_ptx, *h100_node(1), code_alone).status is Status.UNKNOWN
    nameless = compute_check(gpu_code, *h100_node(1), replace(unlisted, version=None))
    assert nameless.unjudged[0].subject == "tensorflow (version unknown)"
    assert compute_check(gpu_code, *h100_node(1), unlisted).unjudged[0].subject == "tensorflow 2.99.0"


def test_gpu_without_code_and_gpu_that_crashes_have_short_forms() -> None:
    def brief(version: str, capability: str) -> str:
        found = gpus(1, gpu(0, compute_capability=capability))
        return briefs(compute_check(gpu_code, *h100_node(1), tensorflow(version=version), found))[0]

    assert brief("2.21.0", "5.2") == "TensorFlow 2.21.0 has no code for this GPU"
    assert brief("2.19.1", "10.0") == "TensorFlow 2.19.1 crashes on this GPU"


@pytest.mark.parametrize(
    ("offered", "stated"), [("12.4", "supports CUDA 12.4"), (None, "does not report its CUDA release")]
)
def test_gap_that_cuda_compat_may_bridge_is_stated(offered: str | None, stated: str) -> None:
    facts = tensorflow(), gpus(driver_version="470.223.02", cuda_driver_version=offered), target()
    (unjudged,) = compute_check(driver_for_cuda, *facts).unjudged
    assert unjudged.reason.endswith(f"older than 525.60.13, but {stated}; cuda-compat may bridge the gap")
    good = compute_check(driver_for_cuda, tensorflow(), gpus(driver_version="525.60.13"), target())
    assert said(good)["NVIDIA driver"].endswith("(CUDA 12 needs driver 525.60.13)")


@pytest.mark.parametrize(
    ("wheels", "subjects"),
    [
        (("nvidia-cudnn-cu12", "nvidia-cudnn-cu13"), ["nvidia-cudnn"]),
        (("nvidia-cudnn-cu12",), []),
        (("nvidia-cublas-cu12", "nvidia-cublas-cu13"), []),  # wheels with folders that are not shared
        (("nvidia-nccl-cu12", "nvidia-nccl-cu13", "nvidia-cudnn-cu12"), ["nvidia-nccl"]),
    ],
)
def test_wheels_that_share_a_folder_are_named(wheels: tuple[str, ...], subjects: list[str]) -> None:
    installed = packages(package("tensorflow", "2.21.0"), *(package(name, "9.1") for name in wheels))
    result = compute_check(cuda_libraries_match, *h100_node(1), libraries(), installed)
    assert [item.finding.subject for item in result.findings if item.finding.subject != "CUDA libraries"] == subjects
    for item in result.findings:
        if item.finding.subject in subjects:
            assert item.finding.headline == "2 wheels overwrite each other's files"
            assert item.finding.remedy.commands[-1].endswith("-cu12==9.1")  # TensorFlow's CUDA is 12


@pytest.mark.parametrize(
    ("choice", "summary", "observed"),
    [
        (
            {"package": "tf-keras", "version": None, "legacy": True},
            "Install tf-keras, or unset TF_USE_LEGACY_KERAS",
            "not installed, although TF_USE_LEGACY_KERAS is set",
        ),
        ({"version": None}, "Install keras.", "not installed"),
    ],
)
def test_missing_keras_is_stated(choice: dict[str, Any], summary: str, observed: str) -> None:
    facts = keras(**choice), packages(package("tensorflow", "2.21.0")), target()
    (found,) = compute_check(keras_compatible, *facts).findings
    assert found.finding.remedy.summary.startswith(summary)
    assert found.finding.observed == observed


@pytest.mark.parametrize(
    ("choice", "stated", "brief"),
    [
        ({}, "version 3.15.1", "Keras 3.15.1"),
        (
            {"package": "tf-keras", "version": "2.21.0", "legacy": True},
            "version 2.21.0 (TF_USE_LEGACY_KERAS is set)",
            "tf-keras 2.21.0",
        ),
    ],
)
def test_keras_that_fits_is_stated(choice: dict[str, Any], stated: str, brief: str) -> None:
    chosen = keras(**choice)
    installed = packages(package("tensorflow", "2.21.0"), package(chosen.package, chosen.version))
    result = compute_check(keras_compatible, chosen, installed, target())
    assert said(result)[chosen.package] == stated
    assert briefs(result)[0] == brief


def measured(version: str) -> Any:
    installed = packages(package("tensorflow", "2.21.0"), package("keras", version))
    (found,) = compute_check(keras_compatible, keras(version=version), installed, target()).findings
    return found.finding


def test_prerelease_of_a_bad_release_is_bad() -> None:
    assert measured("3.6.0rc1").remedy.commands == (f"{PYTHON} -m pip install 'keras>=3.10'",)


def test_release_between_two_that_were_measured_wrong_is_replaced_by_the_newest_right_one() -> None:
    """3.4.1 and 3.6.0 were measured, and so was 3.15.1, the newest."""
    finding = measured("3.5.0rc1")
    assert finding.remedy.commands == (f"{PYTHON} -m pip install keras==3.15.1",)
    assert finding.headline == "does not train as one device on several replicas"


def test_foreign_cudnn_is_removed_from_the_path() -> None:
    old = {"version": "9.1.0", "package": None, "package_version": None, "found_by": "LD_LIBRARY_PATH"}
    (found,) = cudnn(environment(LD_LIBRARY_PATH="/opt/old"), path="/opt/old/libcudnn.so.9", **old).findings
    assert found.finding.remedy.summary == "Remove /opt/old from LD_LIBRARY_PATH."
    assert found.finding.remedy.action is Action.CONFIGURE
    with_wheel = packages(package("tensorflow", "2.21.0"), package("nvidia-cudnn-cu12", "9.24.0.43"))
    path = environment(LD_LIBRARY_PATH="/opt/old")
    (found,) = cudnn(path, with_wheel, path="/opt/old/libcudnn.so.9", **old).findings
    assert found.finding.remedy.commands == ("unset LD_LIBRARY_PATH",)
    (found,) = cudnn(version="9.1.0").findings
    assert found.finding.remedy.summary.startswith("Install the cuDNN that TensorFlow was built with.")


def test_driver_that_a_cudnn_was_tried_with_is_new_enough() -> None:
    """cuDNN 9 for CUDA 12 works with driver 525.60.13 and newer (its support matrix)."""
    rows = [row for row in shipped_matrix().cudnn if row.cuda == 12 and row.oldest_driver]
    least = min(
        (row.oldest_driver for row in rows if row.oldest_driver), key=lambda text: tuple(map(int, text.split(".")))
    )
    for driver, status in ((least, Status.PASS), ("1.0", Status.UNKNOWN), (None, Status.UNKNOWN)):
        result = compute_check(cudnn_for_gpus, *h100_node(1), gpus(1, gpu(0), driver_version=driver))
        assert result.status is status


def test_new_library_for_xla_is_explained_only_if_its_wheel_is_missing() -> None:
    gone = (XlaFile(name="ptxas", status="missing"),)
    bare = libraries(missing("cudart"), xla_files=gone)
    with_wheel = packages(package("tensorflow", "2.21.0"), package("nvidia-cuda-nvcc-cu12", "12.5.82"))

    def explained(*facts: FactGroup) -> tuple[str, ...]:
        return compute_check(xla_files, *h100_node(1), *facts).findings[0].finding.explained_by

    assert explained(bare, packages(package("tensorflow", "2.21.0"))) == ("versions.cuda-libraries",)
    assert explained(bare, with_wheel) == ()
    assert explained(libraries(xla_files=gone), packages(package("tensorflow", "2.21.0"))) == ()
