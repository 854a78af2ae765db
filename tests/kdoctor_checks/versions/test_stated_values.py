"""The versions and packages that the checks of versions state, and those that their commands install."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import PYTHON, environment, gpu, gpus, h100_node, keras, package, packages, target, tensorflow
from helpers.facts.libraries import SOLVER_FOLDER, libraries, library, missing, no_libraries
from helpers.saying import briefs, said
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, LibraryCopy
from kdoctor.matrix.load import loads, shipped_matrix, shipped_text
from kdoctor.model import Assumptions, Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions._libraries import pinned, shown, with_libraries
from kdoctor_checks.versions.cudnn_for_build import cudnn_for_build
from kdoctor_checks.versions.gpu_code import gpu_code
from kdoctor_checks.versions.keras_compatible import keras_compatible
from kdoctor_checks.versions.known_bad import known_bad
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


def test_the_only_distribution_is_named() -> None:
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
