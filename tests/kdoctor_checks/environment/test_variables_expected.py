from __future__ import annotations

import pytest

from helpers.facts import environment, keras
from kdoctor.engine.report import Result
from kdoctor.facts import Environment, KerasChoice
from kdoctor.model import Assumptions, Status
from kdoctor.testing import compute_check
from kdoctor_checks.environment.variables_expected import variables_expected


def judged(found: Environment, **wanted: str) -> Result:
    return compute_check(variables_expected, found, assumptions=Assumptions(environment=wanted))


@pytest.mark.parametrize(
    ("value", "wanted", "status"),
    [
        ("true", "true", Status.PASS),
        ("True", "true", Status.FAIL),
        ("", "true", Status.FAIL),
        (None, "true", Status.FAIL),
        (None, "unset", Status.PASS),
        ("", "unset", Status.FAIL),
        ("1", "unset", Status.FAIL),
        ("", "", Status.PASS),
    ],
)
def test_values_are_compared_exactly(value: str | None, wanted: str, status: Status) -> None:
    found = environment() if value is None else environment(TF_FORCE_GPU_ALLOW_GROWTH=value)
    assert judged(found, TF_FORCE_GPU_ALLOW_GROWTH=wanted).status is status


def test_findings_have_commands_for_remedy_and_rollback() -> None:
    finding = judged(environment(NCCL_DEBUG="a b"), NCCL_DEBUG="unset").findings[0].finding
    assert finding.remedy.commands == ("unset NCCL_DEBUG",)
    assert finding.rollback.commands == ("export NCCL_DEBUG='a b'",)
    finding = judged(environment(), NCCL_DEBUG="INFO").findings[0].finding
    assert finding.remedy.commands == ("export NCCL_DEBUG=INFO",)
    assert finding.rollback.commands == ("unset NCCL_DEBUG",)


def test_unread_variable_is_unknown() -> None:
    assert judged(environment(), MY_OWN="unset").status is Status.UNKNOWN
    assert judged(environment(), MY_OWN="1").status is Status.UNKNOWN
    assert judged(Environment(variables={}), NCCL_DEBUG="unset").status is Status.UNKNOWN


def test_masked_value_is_not_compared() -> None:
    masked = environment(NCCL_ENV_PLUGIN="https://***@plugins.example")
    assert judged(masked, NCCL_ENV_PLUGIN="https://ada@plugins.example").status is Status.UNKNOWN
    failed = judged(masked, NCCL_ENV_PLUGIN="unset")
    assert (failed.status, failed.findings[0].finding.rollback.kind) == (Status.FAIL, "irreversible")


def flagged(found: Environment, choice: KerasChoice | None = None, **wanted: str) -> Result:
    assumed = Assumptions(flags={name.replace("keras_", "keras."): value for name, value in wanted.items()})
    return compute_check(variables_expected, found, choice or keras(), assumptions=assumed)


@pytest.mark.parametrize(
    ("value", "wanted", "status"),
    [
        ("--xla_gpu_autotune_level=4", "4", Status.PASS),
        ("--xla_gpu_autotune_level=4", "2", Status.FAIL),
        ("--xla_gpu_autotune_level=2 --xla_gpu_autotune_level=4", "4", Status.PASS),  # the later one wins
        ("--xla_dump_to='/tmp/a b' --xla_gpu_autotune_level=4", "4", Status.PASS),
        ("--xla_gpu_autotune_level", "true", Status.PASS),
        ("--xla_gpu_autotune_level=True", "true", Status.PASS),
        ("--xla_gpu_autotune_level=4", "unset", Status.FAIL),
        ("--xla_dump_to=/tmp", "unset", Status.PASS),
        ("--xla_dump_to=/tmp", "4", Status.FAIL),
        ("", "unset", Status.PASS),
        (None, "unset", Status.PASS),
        (None, "4", Status.FAIL),
        ("/etc/xla.flags", "4", Status.UNKNOWN),  # XLA reads the flags from that file
        ("--xla_dump_to='/tmp", "unset", Status.UNKNOWN),
    ],
)
def test_single_xla_flags(value: str | None, wanted: str, status: Status) -> None:
    found = environment(CUDA_X="1") if value is None else environment(XLA_FLAGS=value)
    assert flagged(found, xla_gpu_autotune_level=wanted).status is status


def test_flag_is_set_without_losing_the_others() -> None:
    found = environment(XLA_FLAGS="--xla_dump_to=/tmp --xla_gpu_autotune_level=4")
    finding = flagged(found, xla_gpu_autotune_level="2").findings[0].finding
    assert finding.remedy.commands == ("export XLA_FLAGS='--xla_dump_to=/tmp --xla_gpu_autotune_level=2'",)
    assert finding.rollback.commands == ("export XLA_FLAGS='--xla_dump_to=/tmp --xla_gpu_autotune_level=4'",)
    finding = flagged(environment(TF_XLA_FLAGS="--tf_xla_auto_jit=2"), tf_xla_auto_jit="unset").findings[0].finding
    assert finding.remedy.commands == ("unset TF_XLA_FLAGS",)


def test_keras_settings() -> None:
    assert flagged(environment(), keras_floatx="float32", keras_epsilon="0.0000001").status is Status.PASS
    assert flagged(environment(), keras_floatx="float32", keras_epsilon="0.001").status is Status.FAIL
    failed = flagged(environment(), keras_floatx="float16")
    assert (failed.status, failed.findings[0].finding.observed) == (Status.FAIL, "float32")
    assert flagged(environment(), keras(settings={}), keras_floatx="float32").status is Status.UNKNOWN
    wanted = Assumptions(flags={"keras.floatx": "float32"})
    assert compute_check(variables_expected, environment(), assumptions=wanted).status is Status.UNKNOWN


def test_checklist_without_variables_is_skipped_and_unread_facts_are_unknown() -> None:
    assert compute_check(variables_expected, environment()).status is Status.SKIP
    wanted = Assumptions(environment={"NCCL_DEBUG": "INFO"})
    assert compute_check(variables_expected, assumptions=wanted).status is Status.UNKNOWN
