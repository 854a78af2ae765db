"""What was measured, beside the verdict: the trainings' numbers and how the GPUs are connected."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kdoctor.facts import Gpus, PciDevices, SmokeRun, SmokeRuns
from kdoctor.judge import FactTable
from kdoctor.report_model import GpuLinkNote, GpuNote, Report, Training


def with_measurements(report: Report, facts: FactTable) -> Report:
    """The report with what the facts say of trainings and of GPUs. What they do not say stays empty."""
    gpus = facts.get(Gpus)
    told = replace(report, trainings=tuple(_trainings(facts)))
    return _with_gpus(told, gpus, facts) if isinstance(gpus, Gpus) and gpus.devices else told


def _trainings(facts: FactTable) -> Iterator[Training]:
    runs = facts.get(SmokeRuns)
    for run in runs.runs.values() if isinstance(runs, SmokeRuns) else ():
        if isinstance(run, SmokeRun):
            yield from _cases(run)


def _cases(run: SmokeRun) -> Iterator[Training]:
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
        )


def _with_gpus(report: Report, gpus: Gpus, facts: FactTable) -> Report:
    from kdoctor.topology import read_layout

    pci = facts.get(PciDevices)
    layout = read_layout(gpus, pci if isinstance(pci, PciDevices) else None)
    notes = (
        GpuNote(index=place.gpu.index, name=place.gpu.name or "GPU", numa_node=place.numa_node, lost=place.lost)
        for place in layout.places
    )
    links = (GpuLinkNote(first=link.first, second=link.second, label=link.label) for link in layout.links.values())
    return replace(report, gpus=tuple(notes), gpu_links=tuple(links))
