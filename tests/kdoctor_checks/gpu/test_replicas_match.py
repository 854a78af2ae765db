from __future__ import annotations

import pytest

from helpers.facts import (
    PYTHON,
    environment,
    gpu,
    gpus,
    h100_node,
    packages,
    pci,
    smoke_case,
    smoke_run,
    target,
)
from helpers.judging import compute_check
from kdoctor.engine.report import Result
from kdoctor.facts import FactGroup, Gpus, SmokeRuns
from kdoctor.model import Status
from kdoctor_checks.gpu.replicas_match import replicas_match


def judged(*facts: FactGroup) -> Result:
    healthy = (smoke_run(replicas=4), gpus(4), pci(4), environment(), packages(), target())
    return compute_check(replicas_match, *healthy, *facts)


def test_every_gpu_became_a_replica() -> None:
    result = judged()
    assert result.status is Status.PASS
    assert [item.observed for item in result.evidence] == [
        "4 on the PCI bus, 4 in the driver, 4 visible to CUDA, 4 in TensorFlow",
        "4 replicas, 4 of them on a GPU",
    ]


def test_tensorflow_fell_back_to_the_cpu_without_an_error() -> None:
    run = smoke_run("smoke.baseline", 4, smoke_case(replicas=1, kind="CPU"), gpus_seen=0)
    result = judged(run)
    assert result.status is Status.FAIL
    finding = result.findings[0].finding
    assert "4 visible to CUDA, 0 in TensorFlow: the chain breaks between CUDA and TensorFlow" in finding.observed
    assert finding.remedy.commands[1] == f"{PYTHON} -m pip install 'tensorflow[and-cuda]==2.21.0'"
    assert finding.rollback.commands == (f"{PYTHON} -m pip install tensorflow==2.21.0",)


def test_tensorflow_ignored_a_gpu() -> None:
    assert judged(smoke_run("smoke.baseline", 4, smoke_case(replicas=3), gpus_seen=3)).status is Status.FAIL


def test_the_strategy_left_gpus_out() -> None:
    result = judged(smoke_run("smoke.baseline", 4, smoke_case(replicas=2)))
    assert result.status is Status.FAIL
    assert "the chain breaks between TensorFlow and the strategy" in result.findings[0].finding.observed


def test_as_many_replicas_on_the_cpu_are_no_match() -> None:
    result = judged(smoke_run("smoke.baseline", 4, smoke_case(replicas=4, kind="CPU")))
    assert result.status is Status.FAIL
    assert "4 replicas, 0 of them on a GPU" in result.findings[0].finding.observed


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
def test_what_was_not_recorded_is_unknown(facts: tuple[FactGroup, ...]) -> None:
    assert judged(*facts).status is Status.UNKNOWN


def test_a_training_that_was_not_run_is_unknown() -> None:
    result = compute_check(replicas_match, *h100_node(4), SmokeRuns())
    assert (result.status, result.reason) == (Status.UNKNOWN, "scenario smoke.baseline was not run")
