"""What runs on the installed driver: another release, or NVIDIA's forward-compatibility package."""

from dataclasses import replace

from kdoctor.commands.packages import install, restore
from kdoctor.errors import UsageError
from kdoctor.facts import Gpu, Gpus, Packages, Target
from kdoctor.matrix.compatibility import best, compatible
from kdoctor.matrix.gpus import NamedGpu, find_gpu
from kdoctor.matrix.model import VersionMatrix
from kdoctor.matrix.verdict import Machine
from kdoctor.matrix.ways import way_out
from kdoctor.model import Finding, Remedy


def with_alternatives(
    finding: Finding, gpu: Gpu, gpus: Gpus, packages: Packages, target: Target, matrix: VersionMatrix
) -> Finding:
    """The finding that the driver is too old, with what runs on this GPU and driver as its fix, if anything does.

    Another release of TensorFlow comes before NVIDIA's package, because it needs no root. A new driver is named, too.
    """
    machine = _machine(gpu, gpus, target, matrix)
    if machine is None:
        return finding
    verdicts = compatible(matrix, machine)
    chosen, way = best(verdicts), way_out(matrix, machine, verdicts)
    package = way.package if way is not None else None
    needed = finding.expected.partition(",")[0].removesuffix(" or later")
    if chosen is not None:
        also = f" or the package {package}" if package else ""
        remedy = Remedy.reinstall(
            f"Install TensorFlow {chosen.release.version}, which runs on this driver, or {needed}{also}.",
            install(target, packages, *chosen.requirements),
            look=finding.remedy.look,
        )
        return replace(finding, remedy=remedy, rollback=restore(target, packages, "tensorflow", "keras"))
    if way is not None and package is not None:
        summary = f"Install NVIDIA's package {package}, which brings what the driver lacks. Or install {needed}."
        return replace(finding, remedy=replace(finding.remedy, summary=summary, commands=tuple(way.commands)))
    return finding


def _machine(gpu: Gpu, gpus: Gpus, target: Target, matrix: VersionMatrix) -> Machine | None:
    """The machine with this GPU; None if the driver's version or the capability is not known."""
    driver, capability = gpus.driver_version, gpu.compute_capability
    if driver is None or capability is None:
        return None
    try:
        found = find_gpu(matrix, gpu.name or capability)
    except UsageError:
        found = NamedGpu(name=gpu.name or gpu.subject, capability=capability)
    named = replace(found, capability=capability)
    return Machine(driver=driver, gpus=(named,), python=target.version)
