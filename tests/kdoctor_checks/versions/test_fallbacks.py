"""What the checks of versions state where something was not read, and which names they use for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from helpers.facts import PYTHON, environment, gpu, gpus, h100_node, keras, package, packages, pci, target, tensorflow
from helpers.facts.libraries import SOLVER_FOLDER, libraries, library, missing
from helpers.saying import briefs, said
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, LibraryCopy
from kdoctor.matrix.load import loads, shipped_matrix, shipped_text
from kdoctor.model import Action, Assumptions, Finding, GpuAssumption, Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions._alternatives import with_alternatives
from kdoctor_checks.versions._requirements import marker_environment
from kdoctor_checks.versions.cuda_build import cuda_build
from kdoctor_checks.versions.cuda_libraries import cuda_libraries_load
from kdoctor_checks.versions.cuda_libraries_match import cuda_libraries_match
from kdoctor_checks.versions.cudnn_for_gpus import cudnn_for_gpus
from kdoctor_checks.versions.driver_for_cuda import driver_for_cuda
from kdoctor_checks.versions.driver_for_ptx import driver_for_ptx
from kdoctor_checks.versions.gpu_code import gpu_code
from kdoctor_checks.versions.keras_compatible import keras_compatible
from kdoctor_checks.versions.known_bad import known_bad
from kdoctor_checks.versions.known_hazards import known_hazards
from kdoctor_checks.versions.other_conflicts import other_conflicts
from kdoctor_checks.versions.package_conflicts import package_conflicts
from kdoctor_checks.versions.python_supported import python_supported
from kdoctor_checks.versions.runtime_expected import runtime_expected
from kdoctor_checks.versions.tensorflow_installed import tensorflow_installed
from kdoctor_checks.versions.xla_files import xla_files

INSTALL = f"{PYTHON} -m pip install"
NIGHTLY = {"distribution": "tf-nightly", "version": "2.21.0"}
INSTALLED = packages(package("tf-nightly", "2.21.0"), package("keras", "3.15.1"), package("numpy", "2.4.6"))


def on(check: Any, *facts: FactGroup, **changes: Any) -> Result:
    return compute_check(check, *h100_node(1), *facts, **changes)


def finding(result: Result) -> Finding:
    (found,) = result.findings
    return found.finding


# A driver that is too old for the PTX of the build, and what else runs on it.


def too_old(**changes: Any) -> tuple[Finding, Any, Any]:
    device = gpu(0, **{"compute_capability": "9.0", **changes})
    old = gpus(1, device, driver_version="535.161.08", cuda_driver_version="12.2")
    bare = on(driver_for_ptx, old, target(platform="linux-x86_64"))
    return finding(bare), device, old


def alternative(**changes: Any) -> Finding:
    return too_old(**changes)[0]


def test_finding_stays_as_it_is_if_the_machine_is_not_known() -> None:
    found, device, old = too_old()
    for one, all_of_them in (
        (replace(device, compute_capability=None), old),
        (device, replace(old, driver_version=None)),
    ):
        assert with_alternatives(found, one, all_of_them, packages(), target(), shipped_matrix()) is found


def test_package_of_nvidia_is_offered_for_data_center_gpus_only() -> None:
    """cuda-compat works on data-center GPUs only."""
    assert "cuda-compat-12-5" in alternative(name="NVIDIA H100 80GB HBM3").remedy.summary
    assert "cuda-compat-12-5" in alternative(name=None).remedy.summary  # all models of 9.0 are for data centers
    unknown = alternative(name="NVIDIA Some Future 9").remedy
    assert "cuda-compat" not in unknown.summary
    assert unknown.commands[0].startswith(f"{INSTALL} 'tensorflow[and-cuda]==2.16.2'")


@pytest.mark.parametrize("version", ["\u0665\u0663\u0665.161.08", "535.", ""])
def test_driver_version_of_other_digits_is_unknown(version: str) -> None:
    for check in (driver_for_ptx, driver_for_cuda):
        odd = gpus(1, gpu(0, compute_capability="9.0"), driver_version=version)
        assert on(check, odd).status is Status.UNKNOWN


def test_ptx_of_an_unlisted_build_is_named_by_its_cuda() -> None:
    own = tensorflow(version="2.99.0", cuda_version="12.5", compute_capabilities=("sm_80", "compute_80"))
    result = on(driver_for_ptx, own, gpus(1, gpu(0, compute_capability="9.0"), driver_version="580.65.06"))
    assert "needs PTX of CUDA 12.5;" in said(result)[gpu(0).subject]
    listed = on(driver_for_ptx, gpus(1, gpu(0, compute_capability="9.0"), driver_version="580.65.06"))
    assert "needs PTX 8.5;" in said(listed)[gpu(0).subject]


def test_driver_for_an_unknown_cuda_is_named_by_its_major() -> None:
    result = on(driver_for_cuda, tensorflow(version="2.99.0", cuda_version="14.1"))
    assert [item.reason for item in result.unjudged] == ["the minimum driver for CUDA 14 is unknown"]
    for unreadable, reason in (("gone", "gone"), (None, "neither the build nor the version matrix states it")):
        unread = tensorflow(version="2.99.0", cuda_version=None, unreadable=unreadable)
        assert said(on(driver_for_cuda, unread))["NVIDIA driver"].endswith(f"is unknown: {reason}")


def test_code_and_cuda_must_both_be_known() -> None:
    for change in ({"cuda_version": None}, {"compute_capabilities": ()}):
        build = tensorflow(version="2.99.0", **change)
        assert [item.subject for item in on(driver_for_ptx, build).unjudged] == ["tensorflow"]


# Libraries.


def test_rollback_of_libraries_restores_the_distribution_and_the_wheels() -> None:
    installed = packages(package("tf-nightly", "2.21.0"), package("nvidia-cudnn-cu12", "9.24.0.43"))
    found = finding(on(cuda_libraries_load, tensorflow(**NIGHTLY), libraries(missing("cufft")), installed))
    assert found.rollback.commands == (f"{INSTALL} tf-nightly==2.21.0 nvidia-cudnn-cu12==9.24.0.43",)


def test_builds_without_libraries_are_skipped_with_the_reason() -> None:
    bare = libraries(cuda_build=True, libraries=())
    for check, reason in ((cuda_libraries_load, "opens no CUDA library"), (cuda_libraries_match, "no CUDA library")):
        assert on(check, bare).status is Status.SKIP
        assert reason in (on(check, bare).reason or "")
        noted = replace(bare, note="they were not opened")
        assert on(check, noted).reason == "they were not opened"
    cpu = libraries(cuda_build=False, note=None)
    assert on(cuda_libraries_load, cpu).status is Status.SKIP
    assert on(xla_files, libraries(cuda_build=False, xla_files=())).status is Status.SKIP


def test_library_without_a_soname_is_named_by_its_short_name() -> None:
    assert "cufft" in said(on(cuda_libraries_load, libraries(library("cufft", soname=None))))
    assert "libcufft.so.11" in said(on(cuda_libraries_load))
    odd = libraries(library("cufft", soname=None, version=None), library("cusparse", version="99.0"))
    found = said(on(cuda_libraries_match, odd))
    assert "(unknown)" in found["cufft"]
    assert "99.0" in found["libcusparse.so.12"]


def test_libraries_outside_the_search_path_are_left_to_their_check_only_if_all_are() -> None:
    copy = LibraryCopy(path=f"{SOLVER_FOLDER}/libx.so", found_by="not searched")
    one = on(cuda_libraries_load, libraries(missing("cusolver", other_copies=(copy,))))
    assert one.status is Status.PASS


@pytest.mark.parametrize(
    ("change", "foreign"),
    [
        ({"package": None, "found_by": "LD_LIBRARY_PATH"}, True),
        ({"package": None, "found_by": "ld.so.cache"}, False),
        ({"found_by": "LD_LIBRARY_PATH"}, False),
    ],
)
def test_folder_is_removed_from_the_path_only_if_the_library_is_found_by_it(
    change: dict[str, Any],
    foreign: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    broken = library("cufft", status="unusable", load_error="cut", path="/opt/old/libcufft.so.11", **change)
    found = finding(on(cuda_libraries_load, environment(LD_LIBRARY_PATH="/opt/old"), libraries(broken)))
    assert (found.remedy.commands[0] == "unset LD_LIBRARY_PATH") is foreign


def test_mixture_of_libraries_without_wheels_restores_tensorflow() -> None:
    bare = {"package": None, "package_version": None}
    mixed = libraries(library("cublas", version="12.5.3", **bare), *(library(name, **bare) for name in _OTHERS))
    found = finding(on(cuda_libraries_match, mixed))
    assert found.rollback.commands == (f"{INSTALL} tensorflow==2.21.0",)
    assert len(found.remedy.commands) == 1
    with_wheel = finding(on(cuda_libraries_match, libraries(library("cublas", version="12.5.3"))))
    assert "tensorflow" not in with_wheel.rollback.commands[0]
    assert len(with_wheel.remedy.commands) == 2


_OTHERS = ("cudart", "cublasLt", "cufft", "cusolver", "cusparse", "nccl", "cupti")


def test_wheel_of_another_cuda_is_kept_if_none_fits() -> None:
    """TensorFlow's CUDA is 12, and only wheels for 11 and 13 are there: the newest one stays."""
    wheels = (package("nvidia-cudnn-cu11", "8.9"), package("nvidia-cudnn-cu13", "9.12"))
    both = packages(package("tensorflow", "2.21.0"), *wheels)
    found = {item.finding.subject: item.finding for item in on(cuda_libraries_match, both).findings}["nvidia-cudnn"]
    assert found.remedy.commands[-1] == f"{INSTALL} nvidia-cudnn-cu13==9.12"


# cuDNN and the GPUs.


def pascal(*changed: Any, **build: Any) -> Result:
    old = gpus(1, gpu(0, name=None, compute_capability="6.1"))
    return on(cudnn_for_gpus, old, libraries(*changed), tensorflow(**build))


def test_libraries_that_were_not_read_are_unknown() -> None:
    result = on(cudnn_for_gpus, libraries(libraries=()))
    assert (result.status, [item.subject for item in result.unjudged]) == (Status.UNKNOWN, ["libcudnn"])


@pytest.mark.parametrize(
    ("change", "build", "reason"),
    [
        ({"version": None, "version_error": "it died"}, {}, "its version is unknown: it died"),
        ({"version": None, "load_error": "no symbol"}, {}, "its version is unknown: no symbol"),
        ({"version": None}, {}, "its version is unknown: not read"),
        ({}, {"version": "2.99.0", "cuda_version": None}, "its CUDA release is unknown"),
    ],
)
def test_reason_about_cudnn_is_stated(change: dict[str, Any], build: dict[str, Any], reason: str) -> None:
    result = on(cudnn_for_gpus, libraries(library("cudnn", **change)), tensorflow(**build))
    assert said(result) == {"libcudnn.so.9": reason}
    nameless = on(cudnn_for_gpus, libraries(library("cudnn", soname=None, **change)), tensorflow(**build))
    assert said(nameless) == {"libcudnn": reason}


@pytest.mark.parametrize("wheel", ["nvidia-cudnn-cu12", "own-cudnn", None])
def test_cudnn_for_an_old_gpu_is_installed_in_its_package(wheel: str | None) -> None:
    """cuDNN 9.10.2 is the last one for CUDA 12 with code for GPUs before Turing."""
    found = finding(pascal(library("cudnn", package=wheel)))
    assert found.remedy.commands == (f"{INSTALL} nvidia-cudnn-cu12==9.10.2.21",)
    assert found.remedy.look == ()
    assert found.observed.startswith("GPU has compute capability 6.1, but ")


def test_gpu_that_no_cudnn_of_this_cuda_supports_has_no_command() -> None:
    """CUDA 13 has no cuDNN for GPUs before Turing."""
    made = library("cudnn", package="nvidia-cudnn-cu13", version="9.13.0")
    old = gpus(1, gpu(0, name="Tesla P4", compute_capability="5.2"))
    found = finding(on(cudnn_for_gpus, old, libraries(made), tensorflow(version="2.99.0", cuda_version="13.0")))
    assert (found.remedy.commands, found.remedy.look) == ((), ("kdoctor matrix",))
    assert found.observed.startswith("Tesla P4 has compute capability 5.2")


def test_oldest_driver_of_all_rows_counts() -> None:
    """Two rows fit the same cuDNN and GPU; a driver that one of them accepts is new enough."""
    row = next(row for row in shipped_matrix().cudnn if row.cuda == 12 and row.oldest_driver)
    rows = tuple(
        row.model_copy(update={"versions": ">=9", "capabilities": ">=5", "oldest_driver": oldest})
        for oldest in ("999.1", "525.60.13", "600.1")
    )
    matrix = replace(shipped_matrix(), cudnn=rows)
    for driver, status in (("525.60.13", Status.PASS), ("525.60.12", Status.UNKNOWN)):
        result = on(cudnn_for_gpus, gpus(1, gpu(0), driver_version=driver), matrix=matrix)
        assert result.status is status


# Builds, Python and requirements.


def test_name_of_a_gpu_without_a_name_is_gpu() -> None:
    for name, shown in ((None, "GPU has compute"), ("Tesla M40", "Tesla M40 has compute")):
        found = finding(on(gpu_code, gpus(1, gpu(0, name=name, compute_capability="5.2"))))
        assert found.observed.startswith(shown)


def test_gpu_that_no_release_has_code_for_gets_the_newest_release() -> None:
    found = finding(on(gpu_code, gpus(1, gpu(0, compute_capability="1.0"))))
    assert found.remedy.commands == (f"{INSTALL} 'tensorflow[and-cuda]'",)


def with_rows(text: str) -> Any:
    return loads(shipped_text() + text.encode())


CRASHES = """
- id: some_crash
  when: {tensorflow: "==2.99.0rc1", capability: "==9.0"}
  effect: crash
  symptom: it crashes
  ended_by: {tensorflow: ">=2.99.1"}
  fix: tensorflow 2.99.1
  source: seen here
"""


def test_prerelease_is_known_to_crash_on_a_gpu() -> None:
    build = tensorflow(version="2.99.0rc1", cuda_version="12.5", compute_capabilities=("sm_90",))
    found = finding(on(gpu_code, build, matrix=with_rows(CRASHES)))
    assert found.observed.endswith("TensorFlow 2.99.0rc1 is known to fail on it: it crashes")


def test_release_of_cuda_is_the_short_form_of_a_build() -> None:
    assert briefs(on(cuda_build)) == ["CUDA 12.5.1"]
    unread = on(cuda_build, tensorflow(cuda_version=None))
    assert briefs(unread) == [""]
    assert said(unread)["tensorflow 2.21.0"] == "built with CUDA (release unknown)"


@pytest.mark.parametrize(("version", "short"), [("3.11.7", "3.11"), ("3.9", "3.9"), ("3.13.0rc1", "3.13")])
def test_marker_has_two_numbers_of_the_python_version(version: str, short: str) -> None:
    values = marker_environment(target(version=version))
    assert (values["python_version"], values["python_full_version"]) == (short, version)


def test_invalid_requirement_is_unknown_and_the_next_one_is_judged() -> None:
    core = package("tensorflow", "2.21.0", "not a ( one", "numpy>=99")
    installed = packages(core, package("keras", "3.15.1"), package("numpy", "2.0"))
    result = compute_check(package_conflicts, installed, tensorflow(), keras(), target())
    assert finding(result).subject == "numpy 2.0"
    (unjudged,) = result.unjudged
    assert unjudged.subject == "tensorflow"
    assert "\n" not in unjudged.reason
    assert "'not a ( one'" in unjudged.reason
    assert unjudged.reason.partition("': ")[2].strip(" ^~") != ""


def test_requirements_that_are_all_invalid_are_named() -> None:
    installed = packages(package("tensorflow", "2.21.0", "not a ( one"), package("keras", "3.15.1"))
    result = compute_check(package_conflicts, installed, tensorflow(), keras(), target())
    assert [item.subject for item in result.unjudged] == ["tensorflow", "tensorflow"]


@pytest.mark.parametrize(("version", "reason"), [("new", "'new' is not valid"), (None, "has no version")])
def test_version_that_cannot_be_compared_is_stated(version: str | None, reason: str) -> None:
    installed = packages(package("tensorflow", "2.21.0", "numpy>=1"), package("numpy", version))
    result = compute_check(package_conflicts, installed, tensorflow(), keras(), target())
    assert reason in said(result)["numpy"]


def test_long_list_of_needs_has_a_short_form_for_each_case() -> None:
    needs = [f"a-package-with-a-name-that-is-much-too-long-for-one-line-{number}" for number in range(3)]
    owners = [package(name, "1.0", "numpy>=99") for name in needs]
    core = package("tensorflow", "2.21.0", *needs)
    for installed, brief in (
        ((package("numpy", "2.0"),), "does not meet the requirements of other packages"),
        ((), "not installed, but required"),
    ):
        found = packages(core, *owners, *installed)
        result = compute_check(package_conflicts, found, tensorflow(), keras(package="tf-keras"), target())
        assert {item.finding.subject.partition(" ")[0]: item.finding.brief for item in result.findings}[
            "numpy"
        ] == brief


def test_nightly_is_the_root_of_the_requirements() -> None:
    nightly = packages(
        package("tf-nightly", "2.21.0", "numpy>=99"), package("numpy", "2.0"), package("tensorflow", "1.0")
    )
    build = tensorflow(**NIGHTLY)
    core = compute_check(package_conflicts, nightly, build, keras(), target())
    assert finding(core).subject == "numpy 2.0"
    others = compute_check(other_conflicts, nightly, build, keras(), target())
    assert not others.findings
    other = packages(*nightly.installed, package("pandas", "2.0", "numpy>=98", "keras>=99"), package("keras", "3.15.1"))
    found = {
        item.finding.subject: item.finding
        for item in compute_check(other_conflicts, other, build, keras(), target()).findings
    }
    assert found["numpy 2.0"].explained_by == ("versions.package-conflicts",)
    assert found["keras 3.15.1"].explained_by == ("versions.keras-compatible", "versions.package-conflicts")
    fine = packages(
        package("tf-nightly", "2.21.0", "numpy>=1"), package("numpy", "2.0"), package("pandas", "2.0", "numpy>=98")
    )
    (only,) = compute_check(other_conflicts, fine, build, keras(), target()).findings
    assert only.finding.explained_by == ()


def test_invalid_requirements_are_reported_by_the_check_of_their_owner() -> None:
    installed = packages(
        package("tensorflow", "2.21.0", "bad ( core", "numpy"),
        package("numpy", "2.0"),
        package("pandas", "2.0", "bad ( other"),
    )
    core = compute_check(package_conflicts, installed, tensorflow(), keras(), target())
    others = compute_check(other_conflicts, installed, tensorflow(), keras(), target())
    assert [item.subject for item in core.unjudged] == ["tensorflow"]
    assert [item.subject for item in others.unjudged] == ["pandas"]


def test_python_is_that_of_the_installed_distribution() -> None:
    installed = packages(package("tf-nightly", "2.21.0", requires_python=">=3.13"), package("tensorflow", "2.15.0"))
    old = target(version="3.11.7")
    result = compute_check(python_supported, old, installed, tensorflow(**NIGHTLY))
    found = finding(result)
    assert "tf-nightly 2.21.0" in found.observed
    assert "Python 3.13" in found.remedy.summary


def test_installation_without_gpus_has_no_cuda() -> None:
    for wanted, has_cuda in ((Assumptions(gpus=GpuAssumption(count=0)), False), (Assumptions(), True)):
        gone = tensorflow(installed=False)
        result = compute_check(tensorflow_installed, gone, packages(package("numpy")), target(), assumptions=wanted)
        remedy = finding(result).remedy
        assert ("CUDA" in remedy.summary) is has_cuda
        assert ("and-cuda" in remedy.commands[0]) is has_cuda


# Keras and known hazards.


def test_backend_is_stated_with_where_it_is_from() -> None:
    result = compute_check(keras_compatible, keras(backend_from="KERAS_BACKEND"), packages(), target())
    assert said(result)["Keras backend"] == "tensorflow (KERAS_BACKEND)"


BAD_KERAS = """
- id: {name}
  when: {{keras: "{keras}"{more}}}
  effect: {effect}
  symptom: it trains incorrectly
  ended_by: {{keras: ">=9"}}
  fix: keras 9
  source: seen here
"""


@pytest.mark.parametrize(
    ("row", "status"),
    [
        ({"effect": "wrong-results", "more": ""}, Status.FAIL),
        ({"effect": "crash", "more": ""}, Status.PASS),
        ({"effect": "wrong-results", "more": ', tensorflow: "==2.21.0"'}, Status.PASS),
    ],
)
def test_only_rows_of_keras_that_give_wrong_results_count(row: dict[str, str], status: Status) -> None:
    matrix = with_rows(BAD_KERAS.format(name="odd_keras", keras="==3.15.1", **row))
    assert compute_check(keras_compatible, keras(), packages(), target(), matrix=matrix).status is status


def test_wrong_gradients_explain_trainings_and_wrong_losses_only_what_is_reported() -> None:
    """Keras 3.8 and 3.9 train correctly and report wrong losses; 3.5 to 3.7 do not train correctly."""
    for version, explains in (("3.9.2", "job.reported-loss"), ("3.9.0rc1", "job.reported-loss"), ("3.6.0", "job.*")):
        found = packages(package("tensorflow", "2.21.0"), package("keras", version))
        assert (
            finding(compute_check(keras_compatible, keras(version=version), found, target())).explains[-1] == explains
        )


def test_newest_releases_are_named_for_one_that_is_not_listed() -> None:
    result = compute_check(known_bad, packages(), tensorflow(version="2.99.0"), target())
    newest = [release.version for release in shipped_matrix().releases[-4:]]
    reason = said(result)["tensorflow 2.99.0"]
    assert all(version in reason for version in newest[1:])
    assert newest[0] not in reason


HAZARD = """
- id: some_hazard
  when: {tensorflow: "==2.99.0rc1"%s}
  effect: crash
  job: some jobs
  symptom: it crashes
  %s
  fix: %s
  source: seen here
"""


def hazard(text: str) -> Result:
    return on(known_hazards, tensorflow(version="2.99.0rc1"), libraries(), matrix=with_rows(text))


def test_hazard_of_a_prerelease_is_found_and_its_packages_are_restored() -> None:
    row = HAZARD % ("", 'install: ["numpy==1.26.4"]', "numpy 1.26")
    found = {item.finding.subject: item.finding for item in hazard(row).findings}["tensorflow 2.99.0rc1"]
    assert found.remedy.commands == (f"{INSTALL} numpy==1.26.4",)
    assert found.remedy.summary == "Install numpy 1.26."
    assert found.rollback.commands == (f"{INSTALL} numpy==2.4.6",)


def test_hazard_without_a_release_is_avoided_in_the_code() -> None:
    found = {item.finding.subject: item.finding for item in hazard(HAZARD % ("", "", "set jit_compile=False")).findings}
    only = found["tensorflow 2.99.0rc1"]
    assert (only.remedy.summary, only.remedy.action) == ("Set jit_compile=False.", Action.CHANGE_CODE)
    assert (only.remedy.commands, only.rollback.commands) == ((), ())


def test_cudnn_that_was_not_read_matters_only_for_hazards_of_this_release() -> None:
    unread = libraries(library("cudnn", version=None, package_version=None))
    row = HAZARD % (', cudnn: "<9.10.2"', 'install: ["nvidia-cudnn-cu12>=9.10.2"]', "cuDNN 9.10.2")
    concerned = on(known_hazards, tensorflow(version="2.99.0rc1"), unread, matrix=with_rows(row))
    assert "libcudnn" in said(concerned)
    other = on(known_hazards, tensorflow(version="2.98.0"), unread, matrix=with_rows(row))
    assert "libcudnn" not in said(other)


# What a checklist expects of the runtime.


@pytest.mark.parametrize(
    ("error", "errors", "reason"),
    [
        ("it died", {"driver_version": "Unknown Error"}, "it died"),
        (None, {"driver_version": "Unknown Error"}, "Unknown Error"),
        (None, {}, "NVML: ready"),
    ],
)
def test_driver_that_was_not_read_has_a_reason(error: str | None, errors: dict[str, str], reason: str) -> None:
    found = gpus(driver_version=None, error=error, errors=errors)
    result = on(runtime_expected, found, assumptions=Assumptions(driver=">=580"))
    assert [item.reason for item in result.unjudged] == [f"its version was not read ({reason})"]


@pytest.mark.parametrize(
    ("name", "cuda", "package_name"),
    [("cufft", "12.5.1", "nvidia-cufft-cu12"), ("cufft", "13.0", None), ("cuda", "12.5.1", None)],
)
def test_missing_library_is_installed_by_its_wheel(name: str, cuda: str, package_name: str | None) -> None:
    expected = Assumptions(libraries={name: "==11.2"})
    result = on(
        runtime_expected,
        libraries(missing(name, soname=f"lib{name}.so")),
        tensorflow(cuda_version=cuda),
        assumptions=expected,
    )
    remedy = finding(result).remedy
    assert bool(remedy.commands) is bool(package_name)
    if package_name:
        assert package_name in remedy.commands[0]


@pytest.mark.parametrize(
    ("cudnn", "wanted", "status"),
    [
        ("9", ">=9", Status.PASS),
        ("9", ">=8", Status.PASS),
        ("9", ">=10", Status.FAIL),
        ("9", ">=9.5", Status.UNKNOWN),
        ("9.3", ">=9.5", Status.FAIL),
        ("9.3", ">=9.2", Status.PASS),
        ("new", ">=9", Status.UNKNOWN),
    ],
)
def test_major_alone_decides_only_what_it_can(cudnn: str, wanted: str, status: Status) -> None:
    build = tensorflow(version="2.99.0", cudnn_version=cudnn)
    result = on(runtime_expected, build, assumptions=Assumptions(sdk={"cudnn": wanted}))
    assert result.status is status


def test_files_of_xla_are_judged_whatever_the_build_states() -> None:
    assert on(xla_files).status is Status.PASS
    assert on(xla_files, pci()).status is Status.PASS
