"""Rules about platforms, Arm machines and the libraries of the system, by a matrix of a few rows."""

from dataclasses import replace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.matrices import A100, H100, SOURCE, release, small_matrix
from kdoctor.matrix.compatibility import judge
from kdoctor.matrix.gpus import NamedGpu
from kdoctor.matrix.model import GpuKind, Platform
from kdoctor.matrix.platforms import arm_reason, drivers_apart, platform_rule, system_rule
from kdoctor.matrix.verdict import Machine

MACHINE = Machine(driver="560.28.03", gpus=(A100,), python="3.11")
CPU = Machine(gpus=(), python="3.11")
ELSEWHERE = Platform(platform="linux-aarch64", wheels=">=2.1", gpu=">=2.3", lacks={"2.4.0": "==3.11.*"}, source=SOURCE)


@cases(
    ("2.0.0", MACHINE, 1),  # no wheel at all
    ("2.1.0", MACHINE, 1),  # a CPU build
    ("2.1.0", CPU, 0),
    ("2.3.0", MACHINE, 0),
    ("2.3.0rc1", MACHINE, 1),
    ("2.4.0rc1", MACHINE, 0),
    ("2.4.0", MACHINE, 1),  # no wheel for that Python
    ("2.4.0", replace(MACHINE, python="3.12"), 0),
    ("2.4.0", replace(MACHINE, python=None), 0),
    ("2.4.0", CPU, 1),
)
def test_wheels_of_a_platform(version: str, machine: Machine, number: int) -> None:
    found = list(platform_rule(release(version), ELSEWHERE, machine))
    assert [(reason.kind, reason.rule) for reason in found] == [("against", "platform")] * number
    assert list(platform_rule(release(version), None, machine)) == []


def test_platform_without_gpus_has_cpu_builds_only() -> None:
    without = ELSEWHERE.model_copy(update={"gpu": None})
    assert len(list(platform_rule(release("2.3.0"), without, MACHINE))) == 1
    assert list(platform_rule(release("2.3.0"), without, CPU)) == []


GRACE = NamedGpu(name="GH200", capability="9.0", arm_only=True, data_center=True)
JETSON = NamedGpu(name="Orin", capability="8.7", arm_only=True)
UNIFIED, LATER = (replace(JETSON, name=f"Thor {cap}", capability=cap) for cap in ("8.8", "9.8"))
KINDS = (
    *(
        GpuKind(
            capability=cap, architecture="B", arm_models=(f"Thor {cap}",), embedded=True, server_cuda=of, source=SOURCE
        )
        for cap, of in (("8.8", 12), ("9.8", 13))
    ),
    GpuKind(capability="8.7", architecture="Ampere", arm_models=("Orin",), embedded=True, source=SOURCE),
    GpuKind(capability="9.0", architecture="Hopper", data_center=("H100",), arm_models=("GH200",), source=SOURCE),
)


@cases(
    (GRACE, "linux-aarch64", ">=2", None),
    (GRACE, "linux-aarch64", None, "against"),
    (GRACE, None, ">=2", "against"),
    (JETSON, "linux-aarch64", ">=2", "missing"),
    (UNIFIED, "linux-aarch64", ">=2", None),
    (LATER, "linux-aarch64", ">=2", "missing"),
    (JETSON, "linux-aarch64", None, "against"),
)
def test_gpu_of_an_arm_machine(gpu: NamedGpu, platform: str | None, gpu_wheels: str | None, kind: str | None) -> None:
    row = ELSEWHERE.model_copy(update={"gpu": gpu_wheels})
    matrix = small_matrix(release("2.3.0"), gpus=KINDS, platforms=(row,))
    machine = Machine(driver="560.28.03", gpus=(gpu,), python="3.12", platform=platform)
    found = arm_reason(matrix, matrix.releases[0], machine, gpu)
    assert (found and found.kind) == kind
    assert found is None or gpu.name in found.text
    verdict = judge(matrix, matrix.releases[0], machine)
    assert ("platform" in {reason.rule for reason in verdict.reasons}) is (kind is not None)


def test_jax_names_the_option_for_arm_machines() -> None:
    found = arm_reason(replace(small_matrix(), framework="JAX"), release("2.3.0"), MACHINE, GRACE)
    assert found is not None
    assert "--platform linux-aarch64" in found.text


V100, OTHER = NamedGpu(name="V100", capability="7.0"), NamedGpu(name="X", capability="13.0")


@cases(
    (470, "520.61", (V100, H100), True),
    (519, "520.61", (V100, H100), True),
    (520, "520.61", (V100, H100), False),
    (None, "520.61", (V100, H100), False),
    (470, None, (V100, H100), False),
    (470, "520.61", (V100,), False),
    (470, "520.61", (H100,), False),
    (470, "520.61", (V100, OTHER), False),
    (470, "520.61", (OTHER, H100, A100, V100), True),
    (470, "520.61", None, False),
)
def test_gpus_without_a_common_driver(
    last: int | None, first: str | None, gpus: tuple[NamedGpu, ...] | None, *, is_apart: bool
) -> None:
    kinds = (
        GpuKind(capability="7.0", architecture="Volta", models=("V100",), last_branch=last, source=SOURCE),
        GpuKind(capability="8.0", architecture="Ampere", models=("A100",), oldest_driver="450.36", source=SOURCE),
        GpuKind(capability="9.0", architecture="Hopper", models=("H100",), oldest_driver=first, source=SOURCE),
    )
    found = list(drivers_apart(small_matrix(gpus=kinds), Machine(gpus=gpus)))
    assert [(reason.kind, reason.rule) for reason in found] == [("against", "driver")] * is_apart
    if is_apart:
        assert "V100 (7.0) needs branch" in found[0].text
        assert "H100 (9.0) 520.61 or newer" in found[0].text


@cases(
    ("12.5", None, {}, []),
    ("12.5.1", None, {}, []),
    ("12.6", None, {}, []),
    ("12.4", None, {}, ["missing"]),
    ("12", None, {}, ["missing"]),
    ("11.8", None, {}, ["against"]),
    ("13.0", None, {}, ["against"]),
    (None, "9.3", {}, []),
    (None, "9.4", {}, []),
    (None, "9.2", {}, ["against"]),
    (None, "9", {}, ["missing"]),
    (None, "8.9", {}, ["against"]),
    (None, "10.0", {}, ["against"]),
    (None, "9.3.1", {}, []),
    (None, "9.4", {"cudnn": None}, []),
    (None, "9.2", {"cudnn": None}, ["missing"]),  # it requires 9.3 or newer
    (None, "8.9", {"cudnn": None}, ["against"]),
    (None, "9.4", {"cudnn": None, "and_cuda": None}, ["against"]),
    ("12.4", "9.2", {}, ["missing", "against"]),
    (None, None, {}, []),
)
def test_libraries_of_the_system(
    cuda: str | None, cudnn: str | None, changes: dict[str, Any], kinds: list[str]
) -> None:
    one = release("2.3.0", **changes)
    found = list(system_rule(small_matrix(one), one, replace(MACHINE, cuda=cuda, cudnn=cudnn)))
    assert [reason.kind for reason in found] == kinds
    assert {reason.rule for reason in found} <= {"libraries"}


PLUGIN = ("nvidia-cuda-runtime-cu12>=12.1,<13", "nvidia-cudnn-cu12>=9.1,<10")


@cases(
    ("12.5", "9.3", PLUGIN, []),
    ("12.0", None, PLUGIN, ["CUDA 12.0"]),
    ("13.0", None, PLUGIN, ["CUDA 13.0"]),
    (None, "9.0", PLUGIN, ["cuDNN 9.0"]),
    (None, "10.1", PLUGIN, ["cuDNN 10.1"]),
    ("11.8", "8.9", PLUGIN, ["CUDA 11.8", "cuDNN 8.9"]),
    ("12.5", "9.3", None, []),
    ("12.5", "8.9", PLUGIN[1:], ["cuDNN 8.9"]),
    ("11.8", "9.3", PLUGIN[:1], ["CUDA 11.8"]),
)
def test_libraries_of_the_system_for_a_plugin_of_jax(
    cuda: str | None, cudnn: str | None, and_cuda: tuple[str, ...] | None, named: list[str]
) -> None:
    one = release("0.7.0", distribution="jax", extra="cuda12", and_cuda=and_cuda)
    matrix = small_matrix(jax=(one,)).of("jax")
    found = list(system_rule(matrix, one, replace(MACHINE, cuda=cuda, cudnn=cudnn)))
    assert [reason.kind for reason in found] == ["against"] * len(named)
    assert [reason.text.endswith(f"not {library}") for reason, library in zip(found, named, strict=True)] == [
        True
    ] * len(named)


@pytest.mark.parametrize(("cudnn", "named"), [("9.3", "built with 9.3"), (None, "does not state")])
def test_cudnn_of_the_build_is_named(cudnn: str | None, named: str) -> None:
    one = release("2.3.0", cudnn=cudnn)
    (found,) = system_rule(small_matrix(one), one, replace(MACHINE, cudnn="9" if cudnn else "9.2"))
    assert found.text.endswith(named)
