from collections.abc import Iterator, Sequence
from dataclasses import replace

from kdoctor.check import check
from kdoctor.commands.shell import set_variable
from kdoctor.facts import Environment, Gpu, Gpus, Host, PciDevices, Unavailable
from kdoctor.facts.visible import VARIABLE, Mask, read_mask
from kdoctor.model import Assumptions, Evidence, Finding, GpuAssumption, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._builds import NO_DRIVER
from kdoctor_checks._gpus import DRIVER, NEW_CONTAINER

_ORDER, _CONTAINER = "CUDA_DEVICE_ORDER", "NVIDIA_VISIBLE_DEVICES"


@check("environment.visible-devices", severity=Severity.ERROR, needs_gpus=True, requires=DRIVER)
def visible_devices(
    environment: Environment, gpus: Gpus, host: Host, pci: PciDevices | Unavailable, assumptions: Assumptions
) -> Iterator[Outcome]:
    """The variables that select GPUs are valid and leave enough GPUs visible.

    Why: CUDA reads CUDA_VISIBLE_DEVICES up to the first invalid entry and silently ignores the rest. An empty value or
    -1 hides all GPUs, and TensorFlow then trains on the CPU. The indices follow CUDA_DEVICE_ORDER: the fastest GPU is
    first unless the order is PCI_BUS_ID, so with unequal GPUs they differ from the indices of nvidia-smi.
    Remedy: unset the variable to use all GPUs, or select GPUs by UUID; under a scheduler, request the GPUs from it.
    Sources:
        https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/environment-variables.html
        https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/docker-specialized.html
        https://github.com/tensorflow/models/issues/8560
    Failure modes: requested_devices_not_visible
    """
    if gpus.state != "ready":
        reason = f"the driver does not list the GPUs: {gpus.error or gpus.state}"
        yield Unjudged(subject=VARIABLE, reason=reason, explained_by=NO_DRIVER)
        return
    if not gpus.devices:
        yield Unjudged(subject=VARIABLE, reason="the driver lists no GPUs", explained_by=NO_DRIVER)
        return
    devices = gpus.devices  # a lost GPU keeps its index; gpu.visible-to-driver reports it
    mask = read_mask(environment, devices)
    # A GPU that is on the bus and not in the driver makes valid values invalid.
    is_incomplete = isinstance(pci, PciDevices) and len(pci.gpus) > len(devices)
    explained_by = ("gpu.visible-to-driver",) if is_incomplete else ()
    outcome = _judge_mask(mask, devices, assumptions.gpus or GpuAssumption())
    yield replace(outcome, explained_by=explained_by) if isinstance(outcome, Finding) else outcome
    if mask.by_index and mask.visible and len(mask.visible) < len(devices):
        yield _judge_order(environment, devices)
    if host.container != "none" and (asked := environment.get(_CONTAINER)) is not None:
        outcome = _judge_container(asked, devices)
        yield replace(outcome, explained_by=explained_by) if isinstance(outcome, Finding) else outcome


def _judge_mask(mask: Mask, devices: Sequence[Gpu], wanted: GpuAssumption) -> Outcome:
    if mask.unknown_reason:
        return Unjudged(subject=VARIABLE, reason=f"{mask.value!r}: {mask.unknown_reason}")
    if mask.value is None:
        visible = f"{counted(len(devices), 'GPU')} visible"
        brief = visible if len(devices) == 1 else f"all {visible}"
        return Evidence(subject=VARIABLE, observed=f"not set; {visible}", brief=brief)
    shown = f"{len(mask.visible)} of {counted(len(devices), 'GPU')} visible"
    if mask.invalid:
        observed = f"{mask.value!r} is invalid from {mask.invalid}; {shown}"
        return _finding(mask, observed, "existing GPUs, each once", f"its value is invalid, {shown}")
    least = max(1, wanted.count or wanted.at_least or 1)
    if len(mask.visible) < least:
        observed, expected = f"{mask.value!r} leaves {shown}", f"at least {counted(least, 'GPU')} visible"
        return _finding(mask, observed, expected, f"leaves {shown}")
    return Evidence(subject=VARIABLE, observed=f"{mask.value!r}: {shown}", brief=shown)


def _finding(mask: Mask, observed: str, expected: str, brief: str) -> Finding:
    return Finding(
        subject=VARIABLE,
        observed=observed,
        brief=brief,
        expected=expected,
        remedy=Remedy.configure(
            "Unset it to use all GPUs, or select GPUs by UUID. Under a scheduler, request the GPUs from "
            "it, because it sets the variable.",
            set_variable(VARIABLE, None),
            look=("nvidia-smi -L",),
        ),
        rollback=Rollback.to("restore the recorded value", set_variable(VARIABLE, mask.value or "")),
    )


def _judge_order(environment: Environment, devices: Sequence[Gpu]) -> Outcome:
    order = environment.get(_ORDER)
    if order == "PCI_BUS_ID":
        return Evidence(subject=_ORDER, observed="PCI_BUS_ID; CUDA uses the indices of nvidia-smi")
    unread = [gpu.subject for gpu in devices if gpu.name is None]
    if unread:
        return Unjudged(subject=_ORDER, reason=f"the names of the GPUs were not read: {', '.join(unread)}")
    models = sorted({gpu.name or "" for gpu in devices})
    if len(models) == 1:
        return Evidence(subject=_ORDER, observed=f"{order or 'not set'}; all GPUs are of one model and in bus order")
    return Finding(
        subject=_ORDER,
        observed=f"{order or 'not set'} (fastest first), but {VARIABLE} has indices of {', '.join(models)}",
        brief="CUDA's indices of the GPUs are not those of nvidia-smi",
        expected=f"PCI_BUS_ID, or UUIDs in {VARIABLE}",
        remedy=Remedy.configure("Use the order of nvidia-smi.", set_variable(_ORDER, "PCI_BUS_ID")),
        rollback=Rollback.to("restore the recorded order", set_variable(_ORDER, order)),
    )


def _judge_container(asked: str, devices: Sequence[Gpu]) -> Outcome:
    """What the container runtime was asked for. CDI and Kubernetes ("void") add GPUs without it."""
    named = [entry for entry in asked.split(",") if entry.strip()]
    if asked in ("", "all", "none", "void") or len(named) <= len(devices):
        return Evidence(subject=_CONTAINER, observed=f"{asked!r}; the container has {counted(len(devices), 'GPU')}")
    return Finding(
        subject=_CONTAINER,
        observed=f"{asked!r} names {counted(len(named), 'GPU')}, but the container has {len(devices)}",
        brief=f"names {counted(len(named), 'GPU')}, but the container has {len(devices)}",
        expected="all requested GPUs",
        remedy=Remedy.inspect(
            "Look for a lost GPU on the host, then restart the container.",
            "nvidia-smi -L",
            "sudo dmesg | grep -iE 'NVRM|Xid'",
        ),
        rollback=NEW_CONTAINER,
    )
