"""Whether the variables that hide GPUs leave the job what it was planned for."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.facts import Environment, Gpu, Gpus, Host
from kdoctor.facts.visible import VARIABLE, Mask, read_mask
from kdoctor.model import (
    Action,
    Assumptions,
    Evidence,
    Finding,
    GpuAssumption,
    Outcome,
    Remedy,
    Rollback,
    Severity,
    Unjudged,
)

_ORDER, _CONTAINER = "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES"


@check(
    "environment.visible-devices",
    severity=Severity.ERROR,
    needs_gpus=True,
    requires=["driver.library-matches-module"],
)
def visible_devices(environment: Environment, gpus: Gpus, host: Host, assumptions: Assumptions) -> Iterator[Outcome]:
    """The variables that choose GPUs name GPUs that exist, and hide none that the job needs.

    Why: CUDA reads CUDA_VISIBLE_DEVICES up to its first invalid entry and ignores the rest without a word; an empty
    value or -1 hides every GPU, and TensorFlow then trains on the CPU. Its numbers follow CUDA_DEVICE_ORDER, fastest
    GPU first unless that is PCI_BUS_ID, so that with unequal GPUs they are not nvidia-smi's numbers.
    Remedy: unset the variable to use all GPUs, or name GPUs by their UUIDs; under a scheduler ask the scheduler.
    Sources:
        https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html
        https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
        https://github.com/tensorflow/models/issues/8560
    Failure modes: requested_devices_not_visible
    """
    if gpus.state != "ready":
        yield Unjudged(subject=VARIABLE, reason=f"the driver does not list its GPUs: {gpus.error or gpus.state}")
        return
    devices = gpus.devices  # a lost one keeps its number; gpu.visible-to-driver tells it
    mask = read_mask(environment, devices)
    yield _judge_mask(mask, devices, assumptions.gpus or GpuAssumption())
    if mask.by_index and mask.visible and len(mask.visible) < len(devices):
        yield _judge_order(environment, devices)
    asked = environment.get(_CONTAINER)
    if asked is not None and host.container != "none":
        yield _judge_container(asked, devices)


def _judge_mask(mask: Mask, devices: Sequence[Gpu], wanted: GpuAssumption) -> Outcome:
    if mask.value is None:
        return Evidence(subject=VARIABLE, observed=f"not set: all {len(devices)} GPUs are visible")
    if mask.untold:
        return Unjudged(subject=VARIABLE, reason=f"{mask.value!r}: {mask.untold}")
    shown = f"{len(mask.visible)} of {len(devices)} GPUs are visible"
    if mask.invalid:
        return _finding(mask, f"{mask.value!r} is not valid from {mask.invalid}; {shown}", "GPUs that exist, each once")
    least = max(1, wanted.count or wanted.at_least or 1)
    if len(mask.visible) < least:
        return _finding(mask, f"{mask.value!r}: {shown}", f"at least {least} visible")
    return Evidence(subject=VARIABLE, observed=f"{mask.value!r}: {shown}")


def _finding(mask: Mask, observed: str, expected: str) -> Finding:
    return Finding(
        subject=VARIABLE,
        observed=observed,
        expected=expected,
        remedy=Remedy(
            summary="Unset it to use all GPUs, or name the GPUs by the UUIDs of nvidia-smi. Under a scheduler ask the "
            "scheduler for GPUs instead: it sets the variable.",
            action=Action.CONFIGURE,
            commands=("nvidia-smi -L", f"unset {VARIABLE}"),
        ),
        rollback=Rollback.to("the recorded value", f"export {VARIABLE}={shlex.quote(mask.value or '')}"),
    )


def _judge_order(environment: Environment, devices: Sequence[Gpu]) -> Outcome:
    order = environment.get(_ORDER)
    if order == "PCI_BUS_ID":
        return Evidence(subject=_ORDER, observed="PCI_BUS_ID: the numbers are nvidia-smi's")
    unread = [gpu.subject for gpu in devices if gpu.name is None]
    if unread:
        reason = f"whether the GPUs are equal is unknown: the name of {', '.join(unread)} was not read"
        return Unjudged(subject=_ORDER, reason=reason)
    models = sorted({gpu.name or "" for gpu in devices})
    if len(models) == 1:
        return Evidence(subject=_ORDER, observed=f"{order or 'not set'}: the GPUs are equal, and stay in bus order")
    back = f"export {_ORDER}={order}" if order is not None else f"unset {_ORDER}"
    return Finding(
        subject=_ORDER,
        observed=f"{order or 'not set'} (fastest first), numbers in {VARIABLE}, and unequal GPUs: {', '.join(models)}",
        expected=f"PCI_BUS_ID, or UUIDs in {VARIABLE}",
        remedy=Remedy(
            summary="Order CUDA's numbers as nvidia-smi does.",
            action=Action.CONFIGURE,
            commands=(f"export {_ORDER}=PCI_BUS_ID",),
        ),
        rollback=Rollback.to("the recorded order", back),
    )


def _judge_container(asked: str, devices: Sequence[Gpu]) -> Outcome:
    """What the container runtime was asked for. GPUs can also come in by other ways (CDI, Kubernetes: "void")."""
    named = [entry for entry in asked.split(",") if entry.strip()]
    if asked in ("", "all", "none", "void") or len(named) <= len(devices):
        return Evidence(subject=_CONTAINER, observed=f"{asked!r}: the container has {len(devices)} GPUs")
    return Finding(
        subject=_CONTAINER,
        observed=f"{asked!r} names {len(named)}, but the container has {len(devices)}",
        expected="every GPU that the container was started for",
        remedy=Remedy(
            summary="Look on the host for a GPU that is lost, then start the container again.",
            action=Action.INSPECT_HARDWARE,
            commands=("nvidia-smi -L", "sudo dmesg | grep -iE 'NVRM|Xid'"),
        ),
        rollback=Rollback.nothing("a container is started anew; nothing on the host changes"),
    )
