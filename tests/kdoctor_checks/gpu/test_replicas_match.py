from __future__ import annotations

import re

import pytest

from helpers.facts import (
    PYTHON,
    environment,
    gpu,
    gpus,
    h100_node,
    lost_gpu,
    packages,
    pci,
    smoke_case,
    smoke_run,
    target,
)
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, Gpu, Gpus, SmokeRuns
from kdoctor.model import Action, Status
from kdoctor.testing import compute_check
from kdoctor_checks.gpu.replicas_match import replicas_match


def judged(*facts: FactGroup) -> Result:
    healthy = (smoke_run(replicas=4), gpus(4), pci(4), environment(), packages(), target())
    return compute_check(replicas_match, *healthy, *facts)


def test_every_gpu_became_replica() -> None:
    result = judged()
    assert result.status is Status.PASS
    chain, replicas = (item.observed for item in result.evidence)
    assert re.findall(r"\d+", chain) == ["4"] * 4
    assert re.findall(r"\d+", replicas) == ["4"] * 2


def test_tensorflow_fell_back_to_cpu_without_error() -> None:
    run = smoke_run("smoke.baseline", 4, smoke_case(replicas=1, kind="CPU"), gpus_seen=0)
    result = judged(run)
    assert result.status is Status.FAIL
    finding = result.findings[0].finding
    assert re.search(r"^0 of 4 .*4 visible to CUDA", finding.observed)
    assert finding.remedy.commands == (f"{PYTHON} -m pip install 'tensorflow[and-cuda]==2.21.0'",)
    assert finding.rollback.commands == (f"{PYTHON} -m pip install tensorflow==2.21.0",)


@pytest.mark.parametrize(("imported", "installed"), [("2.20.0", "2.20.0"), (None, "2.21.0")])
def test_libraries_are_installed_for_the_tensorflow_of_the_run(imported: str | None, installed: str) -> None:
    run = smoke_run("smoke.baseline", 4, smoke_case(replicas=1, kind="CPU"), gpus_seen=0, tensorflow=imported)
    (command,) = judged(run).findings[0].finding.remedy.commands
    assert command.endswith(f"install 'tensorflow[and-cuda]=={installed}'")


def test_tensorflow_ignored_gpu() -> None:
    assert judged(smoke_run("smoke.baseline", 4, smoke_case(replicas=3), gpus_seen=3)).status is Status.FAIL


def test_missing_gpus_are_explained_by_as_many_that_cannot_be_used() -> None:
    def explained(seen: int, *devices: Gpu) -> tuple[str, ...]:
        run = smoke_run("smoke.baseline", 4, smoke_case(replicas=seen), gpus_seen=seen)
        return judged(run, gpus(4, *devices)).findings[0].finding.explained_by

    closed = gpu(3, compute_mode="prohibited")
    assert explained(3, gpu(0), gpu(1), gpu(2), closed) == ("gpu.compute-mode",)
    assert explained(2, gpu(0), gpu(1), gpu(2), closed) == ()
    assert explained(3, gpu(0), gpu(1), gpu(2), lost_gpu(3)) == ("gpu.responding",)
    divided = (gpu(index, mig_mode=True) for index in range(4))
    assert explained(1, *divided) == ("gpu.mig-mode",)
    assert explained(1, gpu(0), gpu(1), gpu(2), gpu(3, mig_mode=True)) == ("gpu.mig-mode",)
    assert explained(1, gpu(0), gpu(1), gpu(2), gpu(3)) == ()
    assert "versions.cuda-libraries" in explained(0)


def test_strategy_without_some_gpus_fails() -> None:
    result = judged(smoke_run("smoke.baseline", 4, smoke_case(replicas=2)))
    assert result.status is Status.FAIL
    assert result.findings[0].finding.remedy.action is Action.CHANGE_CODE


def test_replicas_on_cpu_fail() -> None:
    result = judged(smoke_run("smoke.baseline", 4, smoke_case(replicas=4, kind="CPU")))
    assert result.status is Status.FAIL
    assert "4 replicas, 0 on a GPU" in result.findings[0].finding.observed


def test_hidden_gpus_are_not_expected() -> None:
    masked = environment(CUDA_VISIBLE_DEVICES="0,2")
    assert judged(masked, smoke_run(replicas=2)).status is Status.PASS
    assert judged(masked, smoke_run(replicas=4)).status is Status.FAIL


@pytest.mark.parametrize(
    "facts",
    [
        (smoke_run(replicas=4, gpus_seen=None),),
        (smoke_run(replicas=4, gpus_seen=None, cases=(), failure="TensorFlow did not import"),),
        (smoke_run(replicas=4, cases=()),),
        (smoke_run("smoke.baseline", 4, smoke_case(replicas=4, devices=())),),
        (smoke_run("smoke.baseline", 4, smoke_case(replicas=4, strategy="OneDeviceStrategy")),),
        (smoke_run(replicas=4, devices_kind="cpu"),),
        (environment(CUDA_VISIBLE_DEVICES="MIG-1234"),),
        (gpus(1, gpu(0, uuid=None)), environment(CUDA_VISIBLE_DEVICES="GPU-abc")),
        (Gpus(state="failed", error="Unknown Error"),),
    ],
)
def test_missing_facts_are_unknown(facts: tuple[FactGroup, ...]) -> None:
    assert judged(*facts).status is Status.UNKNOWN


def test_missing_training_is_unknown() -> None:
    result = compute_check(replicas_match, *h100_node(4), SmokeRuns())
    assert (result.status, result.reason) == (Status.UNKNOWN, "scenario smoke.baseline was not run")


def test_without_visible_gpus_nothing_is_compared() -> None:
    hidden = judged(environment(CUDA_VISIBLE_DEVICES=""), smoke_run("smoke.baseline", 1, gpus_seen=0))
    assert hidden.status is Status.UNKNOWN
    assert "environment.visible-devices" in hidden.unjudged[0].explained_by
    assert hidden.unjudged[0].reason == "no GPU is visible (CUDA_VISIBLE_DEVICES=)"
    none = judged(gpus(0, devices=(), count=0), smoke_run("smoke.baseline", 1, gpus_seen=0))
    assert (none.status, none.unjudged[0].reason) == (Status.UNKNOWN, "the driver lists no GPUs")


@pytest.mark.parametrize(("seen", "explained"), [(0, True), (3, False)])
def test_missing_libraries_explain_that_there_is_no_gpu_at_all(seen: int, *, explained: bool) -> None:
    run = smoke_run("smoke.baseline", 4, smoke_case(replicas=max(seen, 1)), gpus_seen=seen)
    finding = judged(run).findings[0].finding
    assert ("versions.cuda-libraries" in finding.explained_by) is explained
    assert finding.remedy.commands
