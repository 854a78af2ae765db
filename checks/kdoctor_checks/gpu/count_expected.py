from collections.abc import Iterator, Sequence
from dataclasses import replace

from kdoctor.check import check
from kdoctor.commands.shell import set_variable
from kdoctor.commands.system import NVIDIA_DEVICES
from kdoctor.facts import Environment, Gpu, Gpus, NotCollected, PciDevices, Unavailable
from kdoctor.facts.visible import VARIABLE, Mask, read_mask
from kdoctor.model import Assumptions, Evidence, Finding, GpuAssumption, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import (
    DRIVER,
    RESET_NEEDED,
    RESPONDING,
    RESTART,
    answering,
    choose_gpus,
    judge,
    models,
    silent,
)

_SHOW = "Let the job see more GPUs, or expect fewer for this run (--gpus). Under a scheduler, request them there."
_LOOK = ("nvidia-smi -L", NVIDIA_DEVICES)
_OTHER_MACHINE = Remedy.configure(
    "Request the right number of GPUs from the scheduler or container runtime, find the GPU that the driver "
    "does not list, or expect another number (gpus.count in the checklist; --gpus for one run).",
    look=_LOOK,
)
_ONE_GPU = Remedy.configure(
    "For a job on one GPU, expect one. Else request more GPUs from the scheduler or container runtime, or find the "
    "GPU that the driver does not list.",
    "kdoctor check --gpus 1",
    look=_LOOK,
)

_FAULTS = (
    *("gpu.responding", "gpu.kernel-log", "gpu.recovery-action", "gpu.diagnostics", "gpu.clocks"),
    *("gpu.ecc-errors", "gpu.sram-errors", "gpu.retired-pages", "gpu.row-remapping", "gpu.unrepairable-memory"),
    *("topology.fabric", "topology.nvlink", "topology.nvswitch-errors", "topology.iommu-faults"),
)
"""Faults of the machine, which come first where a recording does not show whether GPUs are missing."""


@check("gpu.count-expected", severity=Severity.ERROR, needs_gpus=True, requires=DRIVER, judges=("gpus.count",))
def count_expected(
    gpus: Gpus, environment: Environment | Unavailable, pci: PciDevices | Unavailable, assumptions: Assumptions
) -> Iterator[Outcome]:
    """The job has as many usable GPUs as the checklist expects (by default at least one).

    Why: the global batch size, the learning rate and the reserved time depend on the number of replicas. With fewer
    GPUs the job runs, but it trains something different. A GPU is usable if it responds and CUDA_VISIBLE_DEVICES does
    not hide it.
    Remedy: request the right number of GPUs from the scheduler or container runtime, or find the lost GPU. To use fewer
    GPUs than the machine has, name them in CUDA_VISIBLE_DEVICES.
    Source: https://www.tensorflow.org/guide/distributed_training
    """
    if gpus.state != "ready" or gpus.count != len(gpus.devices):
        counts = f"it counts {gpus.count} and lists {len(gpus.devices)}"
        reason = gpus.error or (gpus.errors.get("count") if gpus.count is None else None) or counts
        yield Unjudged(subject="GPUs", reason=f"not all listed by NVML ({reason})")
        return
    wanted = assumptions.gpus or GpuAssumption()
    is_recording = isinstance(environment, NotCollected)
    if isinstance(environment, Environment):
        mask = read_mask(environment, gpus.devices)
        unknown = f"{VARIABLE}={mask.value}: {mask.unknown_reason}" if mask.unknown_reason else None
    else:
        mask = Mask(value=None, visible=gpus.devices)
        # The variable can only hide GPUs, so too few responding ones are too few whatever its value is.
        fewest = 1 if wanted.at_least is None else wanted.at_least
        too_few = len(answering(gpus)) < (fewest if wanted.count is None else wanted.count)
        # A recorded machine has no shell that could hide GPUs. More GPUs than an exact number may be hidden on purpose.
        fits = wanted.count in (None, len(answering(gpus)))
        unknown = None if too_few or (is_recording and fits) else environment.unavailable
    if unknown:
        yield Unjudged(subject="GPUs", reason=unknown)
        return
    outcome = _judge(gpus, pci, mask, wanted)
    yield replace(outcome, after=_FAULTS) if isinstance(outcome, Finding) and is_recording else outcome


def _judge(gpus: Gpus, pci: PciDevices | Unavailable, mask: Mask, wanted: GpuAssumption) -> Evidence | Finding:
    usable = [gpu for gpu in answering(gpus) if gpu in mask.visible]
    gone = [gpu for gpu in mask.visible if gpu not in usable]
    found, exact, least = len(usable), wanted.count, 1 if wanted.at_least is None else wanted.at_least
    hidden = len(answering(gpus)) - found
    notes = [f"lost: {', '.join(gpu.subject for gpu in gone)}"] if gone else []
    notes += [f"{VARIABLE}={mask.value} hides {hidden}"] if hidden else []
    if exact is not None and found > exact:
        remedy = _fewer(usable, exact)
    elif gone:
        remedy = RESET_NEEDED
    elif hidden:
        remedy = Remedy.configure(_SHOW, set_variable(VARIABLE, None))
    else:
        remedy = _ONE_GPU if found == 1 else _OTHER_MACHINE
    expected = f"exactly {exact}" if exact is not None else f"at least {least}"
    outcome = judge(
        "GPUs",
        "; ".join([f"{counted(found, 'usable GPU')}", *notes]),
        ok=found == exact if exact is not None else found >= least,
        expected=expected,
        remedy=remedy,
        rollback=RESTART if gone else Rollback.nothing("not needed (it changes a variable of your shell, or nothing)"),
    )
    if isinstance(outcome, Evidence):
        return replace(outcome, brief=models(usable))
    short = (least if exact is None else exact) - found
    causes = ("environment.visible-devices",) if hidden else _explained_by(short, gpus, pci)
    return replace(outcome, brief=f"{found} usable, {expected} expected", explained_by=causes)


def _fewer(usable: Sequence[Gpu], count: int) -> Remedy:
    """Restrict the job to that many of the GPUs."""
    return Remedy.configure(
        f"Choose {counted(count, 'GPU')} for the job, such as the first {count}:",
        *choose_gpus(usable[:count]),
        look=(f"kdoctor topology --replicas {count}",),
    )


def _explained_by(short: int, gpus: Gpus, pci: PciDevices | Unavailable) -> tuple[str, ...]:
    """The checks that report the missing GPUs, if exactly as many are lost or not listed by the driver."""
    gone = len(silent(gpus))
    listed = {gpu.bus_id for gpu in gpus.devices}
    nameless = sum(gpu.bus_id is None for gpu in gpus.devices)
    on_bus = pci.gpus if isinstance(pci, PciDevices) else ()
    unlisted = max(0, sum(device.bus_id not in listed for device in on_bus) - nameless)
    if short == gone > 0:
        return (RESPONDING,)
    return (RESPONDING, "gpu.visible-to-driver") if 0 < short == gone + unlisted else ()
