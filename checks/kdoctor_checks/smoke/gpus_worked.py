from collections.abc import Iterable, Iterator, Mapping

from kdoctor.check import check
from kdoctor.facts import CaseUse, Environment, Gpu, Gpus, GpuSampling, GpuUse, SampledGpu, SmokeRuns
from kdoctor.model import Finding, Outcome, Remedy, Severity
from kdoctor.text.lists import counted
from kdoctor_checks._gpus import DRIVER, GIB, MIB, size
from kdoctor_checks.smoke._gpu_usage import (
    ALL,
    NOTHING_TRAINED,
    UsedGpus,
    used_gpus,
    why_not_sampled,
    why_nothing_sampled,
)
from kdoctor_checks.smoke._judging import evidence, finding, unknown

_FIELDS = _UTILIZATION, _MEMORY, _PROCESSES = "utilization_gpu_percent", "memory_used_bytes", "processes"
"""Fields that rise on a GPU that works."""
_CONTEXT_BYTES = 64 * MIB
"""Least memory of a CUDA context, which every process that uses a GPU holds."""
_IDLE_BYTES = 2 * GIB
"""Most memory in use on an idle GPU; more belongs to another process, which may free it meanwhile."""
_ENOUGH_SAMPLES = 3
"""Samples during training steps that rule out that work was missed."""
_BUSY_PERCENT = 10
"""Mean utilization of another GPU from which the same work on this GPU would have been seen."""


@check("smoke.gpus-worked", severity=Severity.WARNING, needs_gpus=True, requires=DRIVER)
def gpus_worked(sampling: GpuSampling, runs: SmokeRuns, gpus: Gpus, environment: Environment) -> Iterator[Outcome]:
    """Every GPU with a replica was busy during training.

    Why: training that silently runs on one GPU looks like training on all, and TensorFlow only lists the devices that
    it was given. NVML is asked about twice a second during the trainings: on a working GPU, memory in use, compute
    processes and utilization rise above their previous values. Trainings that end between two samples prove nothing,
    so the check is unknown then.
    Remedy: compare the strategy's devices with nvidia-smi during a longer training.
    Sources:
        https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html
        https://www.tensorflow.org/guide/gpu
    Failure modes: silent_one_cpu_replica
    """
    nothing = why_nothing_sampled(sampling)
    if nothing is not None:
        yield nothing
        return
    used = used_gpus(sampling, runs, gpus, environment)
    for reason in used.unknown_reasons:
        yield unknown(ALL, f"the GPUs of the trainings are not known: {reason}", NOTHING_TRAINED)
    for subject in used.unsampled:
        yield unknown(subject, "it was not sampled")
    if not used.uses and not used.unknown_reasons:
        yield unknown(ALL, "no training on GPUs finished", NOTHING_TRAINED)
    known = {gpu.index: gpu for gpu in gpus.devices}
    for gpu in sampling.gpus:
        if gpu.index in used.uses:
            why = why_not_sampled(sampling, gpu)
            yield unknown(gpu.subject, why) if why else _judge(gpu, known.get(gpu.index), used)


def _judge(gpu: SampledGpu, idle: Gpu | None, used: UsedGpus) -> Outcome:
    uses = [use.sampled for use in used.uses[gpu.index]]
    before, during = _before(gpu, idle), _highest(uses)
    rose = _rises(during, before)
    seen = f"{counted(sum(use.samples for use in uses), 'sample')} in {counted(len(uses), 'training')}"
    busiest = _busiest_other(used, gpu.index)
    if _UTILIZATION in rose or (rose and busiest < _BUSY_PERCENT):
        little = "" if _UTILIZATION in rose else "; too little work to show in the utilization"
        return evidence(gpu.subject, f"{', '.join(rose.values())} ({seen}{little})")
    training = sum(use.training_samples for use in uses)
    if training < _ENOUGH_SAMPLES:
        return unknown(gpu.subject, f"only {counted(training, 'sample')} during training steps ({seen})")
    doubt = None if rose else _doubt(during, before)
    return unknown(gpu.subject, doubt) if doubt else _finding(gpu, rose, seen, busiest)


def _before(gpu: SampledGpu, idle: Gpu | None) -> dict[str, float]:
    """Values before the trainings: those that were sampled, or else those of the GPU probe."""
    processes = len(idle.processes) if idle and idle.processes is not None else None
    probed = (idle.utilization_gpu_percent, idle.memory_used_bytes, processes) if idle else ()
    known = {name: float(value) for name, value in zip(_FIELDS, probed, strict=False) if value is not None}
    return {**known, **_highest([gpu.before])}


def _highest(uses: Iterable[CaseUse | GpuUse]) -> dict[str, float]:
    """The highest sample of each field."""
    spreads = {name: [spread for use in uses if (spread := getattr(use, name))] for name in _FIELDS}
    return {name: max(spread.high for spread in found) for name, found in spreads.items() if found}


def _rises(during: Mapping[str, float], before: Mapping[str, float]) -> dict[str, str]:
    """The fields that rose above their previous value, with a description."""
    rose: dict[str, str] = {}
    utilization, memory, processes = (during.get(name) for name in _FIELDS)
    if utilization is not None and utilization > before.get(_UTILIZATION, 0):
        rose[_UTILIZATION] = f"utilization up to {utilization:.0f} %"
    if memory is not None and _MEMORY in before and memory >= before[_MEMORY] + _CONTEXT_BYTES:
        rose[_MEMORY] = f"memory in use up by {size(int(memory - before[_MEMORY]))}"
    if processes is not None and _PROCESSES in before and processes > before[_PROCESSES]:
        rose[_PROCESSES] = counted(int(processes), "compute process", "compute processes")
    return rose


def _doubt(during: Mapping[str, float], before: Mapping[str, float]) -> str | None:
    """Why the GPU may have worked although nothing rose."""
    if _MEMORY not in during or _MEMORY not in before:
        return "its memory in use was not read, and short work can fall between two samples of the utilization"
    if before.get(_PROCESSES) or before[_MEMORY] > _IDLE_BYTES:
        return "other processes used it before the trainings and may have ended when they began"
    return None


def _busiest_other(used: UsedGpus, index: int) -> float:
    """The highest mean utilization of another GPU, in percent, in trainings that both GPUs shared."""
    shared = [(use.sampled.scenario, use.sampled.case) for use in used.uses[index] if use.shared]
    spreads = [
        use.sampled.utilization_gpu_percent
        for other, uses in used.uses.items()
        for use in uses
        if other != index
        and use.sampled.training_samples >= _ENOUGH_SAMPLES
        and (use.sampled.scenario, use.sampled.case) in shared
    ]
    return max((spread.mean for spread in spreads if spread is not None), default=0.0)


def _finding(gpu: SampledGpu, rose: Mapping[str, str], seen: str, busiest: float) -> Finding:
    other = f", while another GPU was busy for {busiest:.0f} % of the time" if busiest else ""
    rising = f"{', '.join(rose.values())}, but " if rose else "memory in use, processes and "
    remedy = Remedy.change_code(
        "Watch the GPUs during a longer training, and check that the model is created in the strategy's scope.",
        look=("nvidia-smi dmon -s um", "kdoctor smoke speed -f json"),
    )
    observed = f"{rising}utilization never rose in {seen}{other}"
    expected = "it works whenever the strategy has a replica on it"
    return finding(
        gpu.subject,
        observed,
        expected,
        remedy,
        brief="idle while it should train",
        explained_by=("gpu.replicas-match",),
    )
