"""What the facts measured: trainings, the work of the GPUs, and how the GPUs are connected."""

from collections.abc import Iterator

from kdoctor.engine.report import GpuLinkNote, GpuNote, GpuWork, Training
from kdoctor.facts import Environment, Facts, Gpus, GpuSampling, GpuSeries, PciDevices, SmokeRuns, Spread, Unavailable
from kdoctor.facts.gpus import EVENT_GPU_IDLE, EVENT_NAMES
from kdoctor.facts.visible import read_mask
from kdoctor.topology.layout import read_layout


def trainings(facts: Facts) -> Iterator[Training]:
    """Each case of each smoke training."""
    runs = facts.get(SmokeRuns)
    for run in runs.runs.values() if isinstance(runs, SmokeRuns) else ():
        if isinstance(run, Unavailable):
            continue
        for case in run.cases:
            yield Training(
                scenario=run.scenario,
                case=case.name,
                outcome=case.outcome,
                devices=run.devices_kind,
                replicas=case.replicas,
                losses=case.losses,
                reference_losses=case.reference_losses,
                build_s=case.build_s,
                first_step_s=case.first_step_s,
                step_s=case.step_s,
                measures=case.measures,
                phase=None if case.outcome in ("trained", "skipped") else case.phase,
                stacks=case.stacks,
            )


def visible_gpus(facts: Facts) -> tuple[int, ...]:
    """Indices of the GPUs that a job would use, in its order; none where that, or an index, is unknown."""
    gpus, environment = facts.get(Gpus), facts.get(Environment)
    if not isinstance(gpus, Gpus) or not all(gpu.numbered for gpu in gpus.devices):
        return ()
    if not isinstance(environment, Environment):
        return tuple(gpu.index for gpu in gpus.devices)
    return tuple(gpu.index for gpu in read_mask(environment, gpus.devices).visible)


def gpu_work(facts: Facts) -> Iterator[GpuWork]:
    """What each sampled GPU did while trainings ran."""
    sampling = facts.get(GpuSampling)
    for gpu in sampling.gpus if isinstance(sampling, GpuSampling) else ():
        use = gpu.during
        if not use.samples:
            continue
        yield GpuWork(
            index=gpu.index,
            name=gpu.name or "GPU",
            samples=use.samples,
            mean_utilization_percent=use.utilization_gpu_percent.mean if use.utilization_gpu_percent else None,
            peak_utilization_percent=_peak(use.utilization_gpu_percent),
            peak_memory_bytes=_peak(use.memory_used_bytes),
            peak_temperature_c=_peak(use.temperature_c),
            peak_power_w=_peak(use.power_draw_w),
            power_limit_w=gpu.enforced_power_limit_w,
            held_back={
                EVENT_NAMES.get(event.bit, f"reason {event.bit:#x}"): event.seconds
                for event in use.events
                if event.bit != EVENT_GPU_IDLE
            },
            every_s=gpu.series.every_s if gpu.series else 0.0,
            curves=_curves(gpu.series) if gpu.series else {},
        )


def gpu_layout(facts: Facts) -> tuple[tuple[GpuNote, ...], tuple[GpuLinkNote, ...]]:
    """The GPUs and the links between them; empty if the driver lists none."""
    gpus, pci = facts.get(Gpus), facts.get(PciDevices)
    if not isinstance(gpus, Gpus) or not gpus.devices:
        return (), ()
    layout = read_layout(gpus, pci if isinstance(pci, PciDevices) else None)
    notes = (
        GpuNote(index=place.gpu.index, name=place.gpu.name or "GPU", numa_node=place.numa_node, lost=place.lost)
        for place in layout.places
    )
    links = (GpuLinkNote(first=link.first, second=link.second, label=link.label) for link in layout.links.values())
    return tuple(notes), tuple(links)


def _peak(spread: Spread | None) -> float | None:
    return None if spread is None else spread.high


def _curves(series: GpuSeries) -> dict[str, tuple[float | None, ...]]:
    found = {
        "utilization_percent": series.utilization_gpu_percent,
        "memory_bytes": series.memory_used_bytes,
        "temperature_c": series.temperature_c,
        "power_w": series.power_draw_w,
    }
    return {name: values for name, values in found.items() if any(value is not None for value in values)}
