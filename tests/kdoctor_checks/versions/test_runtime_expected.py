from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import (
    cpu_host,
    gpus,
    h100_node,
    host,
    keras,
    package,
    packages,
    target,
    tensorflow,
)
from helpers.facts.libraries import libraries, library, missing, no_libraries
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, Gpus, Host, KerasChoice, Libraries, TensorFlowBuild
from kdoctor.model import Assumptions, Status
from kdoctor.testing import compute_check
from kdoctor_checks.versions.runtime_expected import runtime_expected

NODE = (*h100_node(), libraries(), packages(), target())
"""TensorFlow 2.21.0 (CUDA 12.5.1), Keras 3.15.1, cuDNN 9.24.0, NCCL 2.27.7, a driver of branch 570."""


def judged(*changed: FactGroup, **wanted: Any) -> Result:
    return compute_check(runtime_expected, *NODE, *changed, assumptions=Assumptions(**wanted))


@pytest.mark.parametrize(
    ("wanted", "status"),
    [
        ({"framework": {"tensorflow": "~=2.21.0"}}, Status.PASS),
        ({"framework": {"tensorflow": "~=2.20.0"}}, Status.FAIL),
        ({"framework": {"keras": ">=3.15,<4"}}, Status.PASS),
        ({"framework": {"keras": "<3.15"}}, Status.FAIL),
        ({"framework": {"flavour": "keras"}}, Status.PASS),
        ({"framework": {"flavour": "tf-keras"}}, Status.FAIL),
        ({"framework": {"backend": "tensorflow"}}, Status.PASS),
        ({"framework": {"backend": "jax"}}, Status.FAIL),
        ({"sdk": {"cuda": "~=12.5"}}, Status.PASS),
        ({"sdk": {"cuda": ">=13"}}, Status.FAIL),
        ({"driver": ">=560"}, Status.PASS),
        ({"driver": "<560"}, Status.FAIL),
        ({"libraries": {"cudnn": ">=9.3", "nccl": ">=2.21"}}, Status.PASS),
        ({"libraries": {"cudnn": ">=9.3", "nccl": ">=2.28"}}, Status.FAIL),
    ],
)
def test_named_assumptions_are_judged(wanted: dict[str, Any], status: Status) -> None:
    assert judged(**wanted).status is status


def test_checklist_without_runtime_is_skipped() -> None:
    assert judged().status is Status.SKIP
    assert judged(python=">=3.10", packages={"keras": ">=3"}).status is Status.SKIP


@pytest.mark.parametrize(
    ("group", "wanted"),
    [
        (TensorFlowBuild, {"framework": {"tensorflow": ">=2"}}),
        (TensorFlowBuild, {"sdk": {"cuda": ">=12"}}),
        (KerasChoice, {"framework": {"keras": ">=3", "flavour": "keras", "backend": "tensorflow"}}),
        (Gpus, {"driver": ">=500"}),
        (Libraries, {"libraries": {"cudnn": ">=9"}}),
        (Host, {"image": "*"}),
    ],
)
def test_unavailable_facts_are_unknown(group: type[FactGroup], wanted: dict[str, Any]) -> None:
    result = compute_check(runtime_expected, *NODE, missing={group: "it broke"}, assumptions=Assumptions(**wanted))
    assert result.status is Status.UNKNOWN
    assert {item.reason for item in result.unjudged} == {"it broke"}


def test_build_with_only_a_major_version_leaves_finer_specifiers_unknown() -> None:
    nightly = tensorflow(distribution="tf-nightly", version="2.99.0.dev20261101", cudnn_version="9")
    assert judged(nightly, sdk={"cudnn": ">=9"}).status is Status.PASS
    assert judged(nightly, sdk={"cudnn": "<10"}).status is Status.PASS
    assert judged(nightly, sdk={"cudnn": ">=10"}).status is Status.FAIL
    for undecided in (">=9.3", "<9.3", "==9.3.*", "~=9.3", "!=9.1"):
        result = judged(nightly, sdk={"cudnn": undecided})
        assert result.status is Status.UNKNOWN
        assert undecided in result.unjudged[0].reason


def test_build_without_cuda_fails() -> None:
    plain = tensorflow(distribution="tensorflow-cpu", cuda_build=False, cuda_version=None, cudnn_version=None)
    sdk = judged(plain, sdk={"cuda": ">=12"})
    assert (sdk.status, sdk.findings[0].finding.subject) == (Status.FAIL, "CUDA SDK")
    assert "without CUDA" in sdk.findings[0].finding.observed
    found = judged(no_libraries(), libraries={"cudnn": ">=9"})
    assert found.status is Status.FAIL
    assert "without CUDA" in found.findings[0].finding.observed


def test_build_without_build_info_is_unknown() -> None:
    silent = tensorflow(cuda_build=None, cuda_version=None, unreadable="build_info.py: gone")
    result = judged(silent, sdk={"cuda": ">=12"})
    assert (result.status, result.reason) == (Status.UNKNOWN, "CUDA SDK: build_info.py: gone")


def test_missing_tensorflow_fails() -> None:
    absent = TensorFlowBuild(installed=False)
    result = judged(absent, framework={"tensorflow": ">=2"}, sdk={"cuda": ">=12"})
    assert result.status is Status.FAIL
    assert [item.finding.subject for item in result.findings] == ["TensorFlow", "CUDA SDK"]


def test_missing_driver_fails() -> None:
    result = compute_check(
        runtime_expected, *cpu_host(), libraries(), packages(), assumptions=Assumptions(driver=">=500")
    )
    assert (result.status, result.findings[0].finding.rollback.kind) == (Status.FAIL, "nothing")


def test_driver_with_an_unread_version_is_unknown() -> None:
    unread = gpus(driver_version=None, errors={"driver_version": "NVML_ERROR_UNKNOWN"})
    assert judged(unread, driver=">=500").status is Status.UNKNOWN
    mismatched = gpus(state="library-mismatch", error="Driver/library version mismatch", driver_version=None)
    assert judged(mismatched, driver=">=500").status is Status.UNKNOWN
    odd = gpus(driver_version="r570-custom")
    assert judged(odd, driver=">=500").status is Status.UNKNOWN


def test_missing_library_fails_and_unread_one_is_unknown() -> None:
    gone = judged(libraries(missing("cudnn")), libraries={"cudnn": ">=9"})
    assert gone.status is Status.FAIL
    assert gone.findings[0].finding.remedy.commands == ("/opt/job/bin/python -m pip install 'nvidia-cudnn-cu12>=9'",)
    assert gone.findings[0].finding.rollback.commands == ("/opt/job/bin/python -m pip uninstall -y nvidia-cudnn-cu12",)
    unread = libraries(library("cudnn", version=None, version_error="it died: SIGSEGV"))
    assert judged(unread, libraries={"cudnn": ">=9"}).reason == "libcudnn.so.9: it died: SIGSEGV"
    system = libraries(library("nccl", package=None, package_version=None, path="/usr/lib/libnccl.so.2"))
    finding = judged(system, libraries={"nccl": ">=3"}).findings[0].finding
    assert finding.remedy.look == ("ldconfig -p | grep libnccl",)


def test_findings_have_commands_for_remedy_and_rollback() -> None:
    finding = judged(libraries={"cudnn": "==9.3.0"}).findings[0].finding
    assert finding.subject == "libcudnn.so.9"
    assert (finding.observed, finding.expected) == ("version 9.24.0", "==9.3.0")
    assert finding.remedy.commands == ("/opt/job/bin/python -m pip install 'nvidia-cudnn-cu12==9.3.0.*'",)
    legacy = (
        judged(keras(package="tf-keras", version="2.21.0", legacy=True), framework={"flavour": "keras"})
        .findings[0]
        .finding
    )
    assert legacy.remedy.commands == ("unset TF_USE_LEGACY_KERAS",)
    assert legacy.rollback.commands == ("export TF_USE_LEGACY_KERAS=1",)
    backend = (
        judged(keras(backend="torch", backend_from="KERAS_BACKEND"), framework={"backend": "tensorflow"})
        .findings[0]
        .finding
    )
    assert backend.remedy.commands == ("export KERAS_BACKEND=tensorflow",)
    assert backend.rollback.commands == ("export KERAS_BACKEND=torch",)
    old = judged(packages(package("keras", "3.6.0")), keras(version="3.6.0"), framework={"keras": "~=3.15.1"})
    assert old.findings[0].finding.remedy.commands == ("/opt/job/bin/python -m pip install 'keras~=3.15.1'",)
    assert old.findings[0].finding.rollback.commands == ("/opt/job/bin/python -m pip install keras==3.6.0",)


def test_image_is_judged_only_if_its_name_is_known() -> None:
    named = host(container="docker", image="registry.example/train:7", image_from="KDOCTOR_IMAGE")
    assert judged(named, image="registry.example/train:*").status is Status.PASS
    failed = judged(named, image="registry.example/train:8")
    assert failed.status is Status.FAIL
    assert "registry.example/train:7" in failed.findings[0].finding.observed
    unknown = judged(host(container="docker"), image="train:*")
    assert unknown.status is Status.UNKNOWN
    assert "KDOCTOR_IMAGE" in (unknown.reason or "")
