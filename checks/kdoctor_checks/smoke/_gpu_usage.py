"""Which GPUs the trainings used, and why sampling says nothing about some of them."""

import re
from collections.abc import Iterator

from kdoctor.facts import CaseUse, Environment, Gpus, GpuSampling, SampledGpu, SmokeCase, SmokeRun, SmokeRuns
from kdoctor.facts.visible import cuda_order
from kdoctor.model import NotApplicable, Unjudged
from kdoctor.records import record
from kdoctor.text.lists import counted
from kdoctor_checks._builds import NO_DRIVER

ALL = "GPUs"
"""The subject if nothing is known about any GPU."""

NOTHING_TRAINED = ("smoke.baseline", "gpu.replicas-match", *NO_DRIVER)
"""The checks that fail if no training used GPUs."""


@record
class Use:
    """Samples of one GPU while a case had a replica on it."""

    case: SmokeCase
    sampled: CaseUse

    @property
    def shared(self) -> bool:
        """Whether every replica had its share; a model made outside the scope trains on one device."""
        weights = self.case.weights
        mirrored = weights is not None and weights.variables > 0 and weights.mirrored == weights.variables
        return mirrored and (self.case.replicas or 0) > 1


@record
class UsedGpus:
    """The GPUs that trainings had replicas on."""

    uses: dict[int, list[Use]]
    """Index of a GPU in nvidia-smi to its sampled trainings, possibly none."""
    unknown_reasons: tuple[str, ...]
    """Why the GPUs of a case are not known, each reason once."""
    unsampled: tuple[str, ...] = ()
    """Subjects of the GPUs that trainings used and that were not sampled."""


def why_nothing_sampled(sampling: GpuSampling) -> NotApplicable | Unjudged | None:
    """Why no GPU was sampled."""
    if sampling.state == "not-started":
        return NotApplicable(reason=sampling.error or "no training ran on GPUs")
    if sampling.state != "ready":
        reason = f"NVML could not be queried ({sampling.error or sampling.state})"
        return Unjudged(subject=ALL, reason=reason, explained_by=NO_DRIVER)
    if not sampling.gpus:
        return Unjudged(subject=ALL, reason=sampling.error or "no GPU was sampled")
    return None


def why_not_sampled(sampling: GpuSampling, gpu: SampledGpu) -> str | None:
    """Why a GPU has no sample from the time of the trainings."""
    if gpu.during.samples:
        return None
    if gpu.hangs:
        return f"NVML's call for {gpu.hangs} did not return"
    reason = gpu.errors.get("handle") or sampling.error or "the trainings ended before the first sample"
    return f"it was not sampled ({reason})"


def used_gpus(sampling: GpuSampling, runs: SmokeRuns, gpus: Gpus, environment: Environment) -> UsedGpus:
    """The GPUs that the trainings had replicas on, by the addresses that CUDA reported or else by CUDA's order."""
    uses: dict[int, list[Use]] = {}
    reasons: dict[str, None] = {}
    unsampled: dict[str, None] = {}
    known = {gpu.bus_id: gpu for gpu in gpus.devices if gpu.bus_id}
    for run, case in _trained(runs):
        found = _gpus_of(run, case, gpus, environment)
        if isinstance(found, str):
            reasons[found] = None
            continue
        indices = found | {known[name].index for name in found if isinstance(name, str) and name in known}
        sampled = {gpu.index for gpu in sampling.gpus} | {gpu.bus_id for gpu in sampling.gpus}
        for name in sorted(map(str, found - sampled)):
            gpu_known = known.get(name)
            if gpu_known is None or gpu_known.index not in sampled:
                unsampled[gpu_known.subject if gpu_known else f"GPU {name}"] = None
        for gpu in sampling.gpus:
            if gpu.bus_id in found or gpu.index in indices:
                uses.setdefault(gpu.index, []).extend(
                    Use(case=case, sampled=use)
                    for use in gpu.cases
                    if (use.scenario, use.case) == (run.scenario, case.name)
                )
    return UsedGpus(uses=uses, unknown_reasons=tuple(reasons), unsampled=tuple(unsampled))


def _trained(runs: SmokeRuns) -> Iterator[tuple[SmokeRun, SmokeCase]]:
    """The cases that trained on GPUs in one process."""
    for run in runs.runs.values():
        if not isinstance(run, SmokeRun) or run.devices_kind != "gpu":
            continue
        for case in run.cases:
            on_gpus = case.on_gpus == len(case.devices) > 0
            if case.outcome == "trained" and on_gpus and not case.workers:
                yield run, case


def _gpus_of(run: SmokeRun, case: SmokeCase, gpus: Gpus, environment: Environment) -> set[str | int] | str:
    """The GPUs of a case's replicas, by address and index; or why they are not known."""
    if case.replicas is not None and case.replicas != len(case.devices):
        return f"{counted(len(case.devices), 'device')} of {counted(case.replicas, 'replica')} were reported"
    if len(case.bus_ids) == len(case.devices) and None not in case.bus_ids:
        return {address for address in case.bus_ids if address}
    order = cuda_order(environment, gpus.devices)
    if environment.get("CUDA_VISIBLE_DEVICES") is None and len(case.devices) == len(gpus.devices):
        order = gpus.devices  # all GPUs, in any order
    if isinstance(order, str):
        return order
    if run.gpus_seen != len(order):
        return f"TensorFlow lists {counted(run.gpus_seen, 'GPU')}, but {len(order)} are visible"
    ends = (re.search(r":([0-9]{1,9})$", device) for device in case.devices)
    numbers = [int(end[1]) for end in ends if end]
    if len(numbers) != len(case.devices) or max(numbers) >= len(order):
        return f"the device names of the replicas contain no GPU numbers ({', '.join(case.devices[:3])})"
    return {order[number].bus_id or order[number].index for number in numbers}
