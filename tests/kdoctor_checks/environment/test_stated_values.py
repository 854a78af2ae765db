"""The values that the checks of the environment compare and state."""

from __future__ import annotations

from typing import Any

import pytest

from helpers.facts import environment, gpu, gpus, host
from helpers.saying import briefs, said
from kdoctor.facts import Environment, Gpus
from kdoctor.model import Assumptions, GpuAssumption, Status
from kdoctor.testing import compute_check
from kdoctor_checks.environment.variables_expected import variables_expected
from kdoctor_checks.environment.visible_devices import visible_devices

VISIBLE, ORDER = "CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"


def flagged(wanted: str, value: str | None, name: str = "xla_gpu_deterministic_ops") -> Any:
    variable = "TF_XLA_FLAGS" if name.startswith("tf_") else "XLA_FLAGS"
    found = environment() if value is None else environment(**{variable: value})
    return compute_check(variables_expected, found, assumptions=Assumptions(flags={name: wanted}))


@pytest.mark.parametrize(
    ("wanted", "value", "status", "observed"),
    [
        ("true", "--xla_gpu_deterministic_ops", Status.PASS, "true (XLA_FLAGS)"),
        ("true", "--xla_gpu_deterministic_ops=True", Status.PASS, "True (XLA_FLAGS)"),
        ("False", "--xla_gpu_deterministic_ops=false", Status.PASS, "false (XLA_FLAGS)"),
        ("true", "--xla_gpu_deterministic_ops=false", Status.FAIL, None),
        ("ABC", "--xla_gpu_deterministic_ops=abc", Status.FAIL, None),  # only true and false ignore the case
        ("unset", None, Status.PASS, "unset (XLA_FLAGS)"),
        ("true", None, Status.FAIL, None),
        ("true", "flags.txt", Status.UNKNOWN, None),
        ("true", "--a='", Status.UNKNOWN, None),
    ],
)
def test_flags_are_compared(wanted: str, value: str | None, status: Status, observed: str | None) -> None:
    result = flagged(wanted, value)
    assert result.status is status
    assert observed is None or said(result)["xla_gpu_deterministic_ops"] == observed


def test_flags_of_tensorflow_have_another_variable() -> None:
    assert said(flagged("2", "--tf_xla_auto_jit=2", "tf_xla_auto_jit")) == {"tf_xla_auto_jit": "2 (TF_XLA_FLAGS)"}


def test_variables_that_were_not_read_are_unknown() -> None:
    unread = Environment(variables={})
    for wanted in (Assumptions(flags={"xla_a": "1"}), Assumptions(environment={"SOME_TOKEN": "1"})):
        result = compute_check(variables_expected, unread, assumptions=wanted)
        assert (result.status, len(result.unjudged)) == (Status.UNKNOWN, 1)


def test_fix_of_a_flag_keeps_the_others() -> None:
    (judged,) = flagged("true", "--xla_other=1 --xla_gpu_deterministic_ops=false").findings
    assert judged.finding.remedy.commands == ("export XLA_FLAGS='--xla_other=1 --xla_gpu_deterministic_ops=true'",)
    (removed,) = flagged("unset", "--xla_gpu_deterministic_ops=false").findings
    assert removed.finding.remedy.commands == ("unset XLA_FLAGS",)


@pytest.mark.parametrize(
    ("environment_", "flags", "status"),
    [({}, {}, Status.SKIP), ({"NCCL_DEBUG": "unset"}, {}, Status.PASS), ({}, {"xla_a": "unset"}, Status.PASS)],
)
def test_only_a_checklist_without_variables_and_flags_is_not_applicable(
    environment_: dict[str, str], flags: dict[str, str], status: Status
) -> None:
    wanted = Assumptions(environment=environment_, flags=flags)
    assert compute_check(variables_expected, environment(), assumptions=wanted).status is status


def test_value_of_a_variable_is_quoted_and_unset_is_not() -> None:
    given = environment(NCCL_DEBUG="INFO")
    wanted = Assumptions(environment={"NCCL_DEBUG": "INFO", "NCCL_P2P_DISABLE": "unset"})
    assert said(compute_check(variables_expected, given, assumptions=wanted)) == {
        "NCCL_DEBUG": "'INFO'",
        "NCCL_P2P_DISABLE": "unset",
    }


def visible(found: Gpus, wanted: dict[str, int] | None = None, **variables: str) -> Any:
    expected = wanted or {}
    assumptions = Assumptions(gpus=GpuAssumption(count=expected.get("count"), at_least=expected.get("at_least")))
    return compute_check(visible_devices, environment(**variables), found, host(), assumptions=assumptions)


def test_driver_that_lists_no_gpus_is_unknown_with_its_error() -> None:
    failed = visible(Gpus(state="failed", error="Unknown Error"))
    assert said(failed) == {VISIBLE: "the driver does not list the GPUs: Unknown Error"}
    assert said(visible(Gpus(state="failed"))) == {VISIBLE: "the driver does not list the GPUs: failed"}
    assert visible(gpus(0)).status is Status.UNKNOWN


def test_visible_gpus_are_counted() -> None:
    assert briefs(visible(gpus(1))) == ["1 GPU visible"]
    assert briefs(visible(gpus(2))) == ["all 2 GPUs visible"]
    some = visible(gpus(4), wanted={"at_least": 2}, **{VISIBLE: "0,1", ORDER: "PCI_BUS_ID"})
    assert said(some)[VISIBLE] == "'0,1': 2 of 4 GPUs visible"


@pytest.mark.parametrize(
    ("mask", "wanted", "status"),
    [
        ("0,1", {"at_least": 2}, Status.PASS), ("0,1", {"at_least": 3}, Status.FAIL),
        ("0,1", {"count": 2}, Status.PASS), ("0,1", {"count": 3}, Status.FAIL),
        ("0", {}, Status.PASS), ("", {}, Status.FAIL),
    ],
)  # fmt: skip
def test_as_many_gpus_are_visible_as_the_checklist_expects(mask: str, wanted: dict[str, int], status: Status) -> None:
    assert visible(gpus(4), wanted=wanted, CUDA_VISIBLE_DEVICES=mask, CUDA_DEVICE_ORDER="PCI_BUS_ID").status is status


def test_order_matters_between_models() -> None:
    mixed = gpus(3, gpu(0, name="A"), gpu(1, name="A"), gpu(2, name="B"))
    one = gpus(3)
    assert ORDER not in said(visible(mixed, CUDA_VISIBLE_DEVICES="0,1,2"))  # all are visible
    assert (
        said(visible(one, CUDA_VISIBLE_DEVICES="0,1"))[ORDER] == "not set; all GPUs are of one model and in bus order"
    )
    assert said(visible(one, CUDA_VISIBLE_DEVICES="0", CUDA_DEVICE_ORDER="FASTEST_FIRST"))[ORDER].startswith(
        "FASTEST_FIRST; all"
    )
    assert said(visible(mixed, CUDA_VISIBLE_DEVICES="0"))[ORDER].startswith("not set (fastest first), but ")
    found = visible(mixed, CUDA_VISIBLE_DEVICES="0", CUDA_DEVICE_ORDER="FASTEST_FIRST")
    assert said(found)[ORDER] == f"FASTEST_FIRST (fastest first), but {VISIBLE} has indices of A, B"
    assert found.status is Status.FAIL


@pytest.mark.parametrize(
    ("asked", "status"),
    [("all", Status.PASS), ("0,1", Status.PASS), ("0,1,2", Status.FAIL), ("void", Status.PASS), ("0,1,", Status.PASS)],
)
def test_container_has_as_many_gpus_as_were_requested(asked: str, status: Status) -> None:
    found = environment(NVIDIA_VISIBLE_DEVICES=asked)
    result = compute_check(visible_devices, found, gpus(2), host(container="docker"), assumptions=Assumptions())
    assert result.status is status


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("--xla_gpu_deterministic_ops=***", "its value has a secret and is masked"),
        ("flags.txt", "XLA_FLAGS names a file of flags, or is not valid: 'flags.txt'"),
    ],
)
def test_reason_of_a_flag_that_cannot_be_compared_is_stated(value: str, reason: str) -> None:
    assert said(flagged("true", value)) == {"xla_gpu_deterministic_ops": reason}


@pytest.mark.parametrize(("asked", "number"), [("all", 2), ("GPU-a,GPU-b", 2), ("GPU-a", 2), ("", 1)])
def test_gpus_of_a_container_are_counted(asked: str, number: int) -> None:
    variables = environment(NVIDIA_VISIBLE_DEVICES=asked)
    result = compute_check(visible_devices, variables, gpus(number), host(container="docker"))
    stated = f"{asked!r}; the container has {number} GPU{'' if number == 1 else 's'}"
    assert said(result)["NVIDIA_VISIBLE_DEVICES"] == stated


@pytest.mark.parametrize(
    ("wanted", "found", "stated"),
    [("1", {"A": "2"}, "'2'"), ("unset", {"A": "2"}, "'2'"), ("1", {}, "unset")],
)
def test_other_value_of_a_variable_is_stated(wanted: str, found: dict[str, str], stated: str) -> None:
    known = Environment(variables=found, allow_list=("A",))
    result = compute_check(variables_expected, known, assumptions=Assumptions(environment={"A": wanted}))
    (judged,) = result.findings
    assert stated in judged.finding.observed
    expected = "unset" if wanted == "unset" else f"'{wanted}'"
    assert expected in judged.finding.expected
