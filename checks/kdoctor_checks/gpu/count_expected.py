from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from kdoctor.check import check
from kdoctor.facts import Gpu, Gpus, PciDevices, Unavailable
from kdoctor.model import Assumptions, GpuAssumption, Outcome, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import (
    RESET_NEEDED,
    RESPONDING,
    RESTART,
    answering,
    configure,
    judge,
    silent,
)

_OTHER_MACHINE = configure(
    "Request the right number of GPUs from the scheduler or container runtime, find the GPU that the driver does not "
    "list, or correct gpus.count in the checklist.",
    look=("nvidia-smi -L", "lspci -nn -d 10de:"),
)

_LONGEST = 60


@check(
    "gpu.count-expected",
    severity=Severity.ERROR,
    needs_gpus=True,
    requires=["driver.library-matches-module"],
    judges=("gpus.count",),
)
def count_expected(gpus: Gpus, pci: PciDevices | Unavailable, assumptions: Assumptions) -> Iterator[Outcome]:
    """As many GPUs respond as the checklist expects (by default at least one).

    Why: the global batch size, the learning rate and the reserved time depend on the number of replicas. With fewer
    GPUs the job runs, but it trains something different.
    Remedy: request the right number of GPUs from the scheduler or container runtime, or find the lost GPU.
    Source: https://www.tensorflow.org/guide/distributed_training
    """
    wanted = assumptions.gpus or GpuAssumption()
    found = len(answering(gpus))
    gone = [gpu.subject for gpu in gpus.devices if gpu not in answering(gpus)]
    observed = f"{found} {'responds' if found == 1 else 'respond'}" + (f"; lost: {', '.join(gone)}" if gone else "")
    if gpus.state != "ready" or gpus.count is None or gpus.count > len(gpus.devices):
        counts = f"it counts {gpus.count} and lists {len(gpus.devices)}"
        reason = gpus.error or (gpus.errors.get("count") if gpus.count is None else None) or counts
        yield Unjudged(subject="GPUs", reason=f"not all listed by NVML ({reason})")
        return
    exact, least = wanted.count, 1 if wanted.at_least is None else wanted.at_least
    expected = f"exactly {exact}" if exact is not None else f"at least {least}"
    short = (least if exact is None else exact) - found
    yield judge(
        "GPUs",
        observed,
        ok=found == exact if exact is not None else found >= least,
        expected=expected,
        remedy=RESET_NEEDED if gone else _OTHER_MACHINE,
        rollback=RESTART,
        value=_models(answering(gpus)),
        brief=f"{found} {'responds' if found == 1 else 'respond'}, {expected} expected",
        explained_by=_explained_by(short, gpus, pci),
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


def _models(gpus: Sequence[Gpu]) -> str:
    """The number of GPUs of each model: ``8 x NVIDIA H100 80GB HBM3``."""
    counts = Counter(gpu.name for gpu in gpus)
    if None in counts:
        return counted(len(gpus), "GPU")
    shown = ", ".join(f"{times} x {name}" for name, times in counts.items())
    return shown if len(shown) <= _LONGEST else f"{len(gpus)} GPUs of {len(counts)} models"
