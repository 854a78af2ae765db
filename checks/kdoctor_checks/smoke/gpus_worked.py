"""Whether the GPUs themselves say that every one of them worked while models were trained on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kdoctor.check import check
from kdoctor.facts import CaseUse, Environment, Gpu, Gpus, GpuSampling, SampledGpu, SmokeRuns, Spread
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import GIB, MIB, size
from kdoctor_checks.smoke._cases import MEASURE_ONLY
from kdoctor_checks.smoke._sampled import ALL, Used, nothing_sampled, used_gpus, why_no_sample

_CONTEXT_BYTES = 64 * MIB
"""A process that uses a GPU holds a CUDA context on it, which takes more than this."""
_STRANGERS_BYTES = 2 * GIB
"""An idle GPU's memory in use is below this; more is somebody's, who may give it back just then."""
_ENOUGH = 3
"""So many samples from the midst of trainings say that nothing happened, and not that it was missed."""
_BUSY_PERCENT = 10
"""Where the other GPUs are so busy on average, one that shares their work cannot have gone unseen."""


@check("smoke.gpus-worked", severity=Severity.WARNING, needs_gpus=True)
def gpus_worked(sampling: GpuSampling, runs: SmokeRuns, gpus: Gpus, environment: Environment) -> Iterator[Outcome]:
    """Every GPU that had a replica worked while it trained, as the GPU itself tells.

    Why: a training that silently runs on one GPU looks like one that runs on all, and TensorFlow's list of devices is
    TensorFlow's word. The driver was asked about twice a second during the trainings: memory in use, compute
    processes and utilisation of a GPU that works rise above what they were before. Trainings that are over between
    two samples prove nothing against a GPU, so that this check is unknown then.
    Remedy: compare the strategy's devices with nvidia-smi during a longer training.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
        https://www.tensorflow.org/guide/gpu
    Failure modes: silent_one_cpu_replica
    """
    silent = nothing_sampled(sampling)
    if silent is not None:
        yield silent
        return
    used = used_gpus(sampling, runs, gpus, environment)
    for reason in used.untold:
        yield Unjudged(subject=ALL, reason=f"which GPUs the trainings had is not known: {reason}")
    if not used.uses and not used.untold:
        yield Unjudged(subject=ALL, reason="no training over GPUs came to its end")
    known = {gpu.index: gpu for gpu in gpus.devices}
    for gpu in sampling.gpus:
        if gpu.index in used.uses:
            silence = why_no_sample(sampling, gpu)
            yield Unjudged(subject=gpu.subject, reason=silence) if silence else _judge(gpu, known.get(gpu.index), used)


def _judge(gpu: SampledGpu, idle: Gpu | None, used: Used) -> Outcome:
    uses = [use.sampled for use in used.uses[gpu.index]]
    before = _before(gpu, idle)
    rose = _rises(uses, before)
    seen = f"{counted(sum(use.samples for use in uses), 'sample')} in {counted(len(uses), 'training')}"
    busiest = _busiest_beside(used, gpu.index)
    if "utilisation" in rose or (rose and busiest < _BUSY_PERCENT):
        little = "" if "utilisation" in rose else "; too little work to show in its utilisation"
        return Evidence(subject=gpu.subject, observed=f"{', '.join(rose.values())} ({seen}{little})")
    training = sum(use.training_samples for use in uses)
    if training < _ENOUGH:
        reason = f"its trainings were over between the samples: {training} fell into their steps ({seen})"
        return Unjudged(subject=gpu.subject, reason=reason)
    doubt = None if rose else _doubt(uses, before)
    return Unjudged(subject=gpu.subject, reason=doubt) if doubt else _idle(gpu, rose, seen, busiest)


def _before(gpu: SampledGpu, idle: Gpu | None) -> dict[str, float]:
    """What was in use before the trainings, by the sampling or else by what was read of the machine before it."""
    read = {
        "utilisation": idle.utilization_gpu_percent if idle else None,
        "memory": idle.memory_used_bytes if idle else None,
        "processes": len(idle.processes) if idle and idle.processes is not None else None,
    }
    found = {name: float(value) for name, value in read.items() if value is not None}
    sampled = {
        "utilisation": gpu.before.utilization_gpu_percent,
        "memory": gpu.before.memory_used_bytes,
        "processes": gpu.before.processes,
    }
    return {**found, **{name: spread.high for name, spread in sampled.items() if spread is not None}}


def _high(spreads: list[Spread | None]) -> float | None:
    return max((spread.high for spread in spreads if spread is not None), default=None)


def _rises(uses: list[CaseUse], before: Mapping[str, float]) -> dict[str, str]:
    """What rose above its value before, in words."""
    rose: dict[str, str] = {}
    utilisation = _high([use.utilization_gpu_percent for use in uses])
    memory = _high([use.memory_used_bytes for use in uses])
    processes = _high([use.processes for use in uses])
    if utilisation is not None and utilisation > before.get("utilisation", 0):
        rose["utilisation"] = f"utilisation up to {utilisation:.0f} %"
    if memory is not None and "memory" in before and memory >= before["memory"] + _CONTEXT_BYTES:
        rose["memory"] = f"memory in use up by {size(int(memory - before['memory']))}"
    if processes is not None and "processes" in before and processes > before["processes"]:
        rose["processes"] = counted(int(processes), "compute process", "compute processes")
    return rose


def _doubt(uses: list[CaseUse], before: Mapping[str, float]) -> str | None:
    """Why nothing that rose does not mean that nothing worked."""
    memory = _high([use.memory_used_bytes for use in uses])
    if memory is None or "memory" not in before:
        return "its memory in use was not read, and short work falls between the samples of its utilisation"
    if before.get("processes") or before["memory"] > _STRANGERS_BYTES:
        return "others used it before the trainings, and may have left when they began"
    return None


def _busiest_beside(used: Used, index: int) -> float:
    """The highest mean utilisation of another GPU, in percent, in trainings in which both did their share."""
    shared = [(use.sampled.scenario, use.sampled.case) for use in used.uses[index] if use.shared]
    spreads = [
        use.sampled.utilization_gpu_percent
        for other, uses in used.uses.items()
        for use in uses
        if other != index
        and use.sampled.training_samples >= _ENOUGH
        and (use.sampled.scenario, use.sampled.case) in shared
    ]
    return max((spread.mean for spread in spreads if spread is not None), default=0.0)


def _idle(gpu: SampledGpu, rose: Mapping[str, str], seen: str, busiest: float) -> Finding:
    beside = f", while another was busy for {busiest:.0f} % of the time" if busiest else ""
    took = f"{', '.join(rose.values())}, but " if rose else "memory in use, processes and "
    return Finding(
        subject=gpu.subject,
        observed=f"{took}utilisation never rose in {seen}{beside}",
        expected="it works whenever the strategy has a replica on it",
        remedy=Remedy(
            summary="Watch the GPUs during a longer training, and compare with strategy.extended.worker_devices; see "
            "that the model, with its variables, is made in the strategy's scope.",
            action=Action.CHANGE_CODE,
            commands=("nvidia-smi dmon -s um", "kdoctor smoke speed -f json"),
        ),
        rollback=MEASURE_ONLY,
    )
