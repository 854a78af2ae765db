"""What runs on the installed driver: another release, or NVIDIA's forward-compatibility package."""

from __future__ import annotations

from dataclasses import replace

from kdoctor.commands.packages import install
from kdoctor.errors import UsageError
from kdoctor.facts import Gpu, Gpus, Packages, Target
from kdoctor.matrix.compatibility import best, compatible
from kdoctor.matrix.gpus import NamedGpu, find_gpu
from kdoctor.matrix.model import VersionMatrix
from kdoctor.matrix.values import numbers
from kdoctor.matrix.verdict import Machine
from kdoctor.matrix.ways import way_out
from kdoctor.model import Finding


def with_alternatives(
    finding: Finding, gpu: Gpu, gpus: Gpus, packages: Packages, target: Target, matrix: VersionMatrix
) -> Finding:
    """The finding that the driver is too old, with what also runs on this GPU and driver."""
    machine = _machine(gpu, gpus, target, matrix)
    if machine is None:
        return finding
    verdicts = compatible(matrix, machine)
    chosen, way = best(verdicts), way_out(matrix, machine, verdicts)
    summary, commands = finding.remedy.summary, list(finding.remedy.commands)
    if way is not None and way.package is not None:
        summary += f" On this GPU, NVIDIA's package {way.package} also brings what the driver lacks."
        commands += way.commands
    if chosen is not None:
        summary += f" The newest release that runs on this driver is TensorFlow {chosen.release.version}."
        commands.append(install(target, packages, *chosen.requirements))
    return replace(finding, remedy=replace(finding.remedy, summary=summary, commands=tuple(commands)))


def _machine(gpu: Gpu, gpus: Gpus, target: Target, matrix: VersionMatrix) -> Machine | None:
    """The machine with this GPU; None if the driver's version or the capability is not known."""
    driver, capability = gpus.driver_version, gpu.compute_capability
    if driver is None or capability is None:
        return None
    try:
        numbers(driver)
        found = find_gpu(matrix, gpu.name or capability)
    except (ValueError, UsageError):
        found = NamedGpu(name=gpu.name or gpu.subject, capability=capability)
    named = replace(found, capability=capability)
    return Machine(driver=driver, gpus=(named,), python=target.version)
