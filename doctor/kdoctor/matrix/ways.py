"""How to run a release that the installed driver is too old for."""

from collections.abc import Sequence

from kdoctor.matrix.compatibility import needed_driver
from kdoctor.matrix.model import VersionMatrix
from kdoctor.matrix.values import numbers, older_driver
from kdoctor.matrix.verdict import Machine, Verdict
from kdoctor.records import record


@record
class WayOut:
    """How a newer release would run."""

    verdict: Verdict
    driver: str
    """The oldest driver that runs it on these GPUs."""
    package: str | None = None
    """NVIDIA's forward-compatibility package that replaces a newer driver; None if there is none for this machine."""

    @property
    def why(self) -> str | None:
        """Which code the installed driver cannot compile; None if the driver fails for another reason."""
        return next((item.brief for item in self.verdict.against if item.brief and item.needed == self.driver), None)

    @property
    def commands(self) -> tuple[str, ...]:
        """What installs and uses the package (Ubuntu)."""
        if self.package is None:
            return ()
        folder = f"/usr/local/cuda-{self.package.removeprefix('cuda-compat-').replace('-', '.')}/compat"
        return (
            f"sudo apt-get install {self.package}",
            f'export LD_LIBRARY_PATH="{folder}${{LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}}"',
        )


def way_out(matrix: VersionMatrix, machine: Machine | None, verdicts: Sequence[Verdict]) -> WayOut | None:
    """How to run the newest release that fails because of the driver alone, if it is newer than all that run."""
    if machine is None or machine.driver is None or not machine.gpus:
        return None
    matrix = matrix.at(machine.platform)
    for verdict in verdicts:
        if verdict.release.prerelease:
            continue
        same = [other for other in verdicts if other.release.version == verdict.release.version]
        if any(other.outcome == "runs" for other in same):
            return None
        # Of a release that lacks facts as well, a driver alone may not suffice.
        blocked = [other for other in same if {item.rule for item in other.against} == {"driver"} and not other.missing]
        if blocked:
            return _way(matrix, machine, blocked[-1])  # for JAX, the plugin for the older CUDA
    return None


def _way(matrix: VersionMatrix, machine: Machine, verdict: Verdict) -> WayOut | None:
    gpus, installed = machine.gpus or (), machine.driver or ""
    driver = needed_driver(matrix, verdict.release, gpus)
    kinds = [kind for gpu in gpus if (kind := matrix.capability(gpu.capability))]
    ended = any(kind.last_branch is not None and numbers(installed)[0] > kind.last_branch for kind in kinds)
    if driver is None or ended or not older_driver(installed, driver):
        return None
    return WayOut(verdict=verdict, driver=driver, package=_package(matrix, verdict, machine))


def _package(matrix: VersionMatrix, verdict: Verdict, machine: Machine) -> str | None:
    """The oldest package that suffices, for data-center GPUs that the installed driver supports."""
    gpus = machine.gpus or ()
    kinds = [matrix.capability(gpu.capability) for gpu in gpus]
    supported = all(
        kind is not None and not (kind.oldest_driver and older_driver(machine.driver or "", kind.oldest_driver))
        for kind in kinds
    )
    if not supported or not all(gpu.data_center for gpu in gpus) or matrix.elsewhere(machine.platform):
        return None
    release = verdict.release
    needed = [numbers(release.cuda)[:1]]
    for kernels in release.kernels:
        cuda = matrix.ptx_cuda(kernels, release.cuda)
        if cuda and any(kernels.runs_on(gpu.capability) == "PTX" for gpu in gpus):
            needed.append(numbers(cuda)[:2])
    branch = numbers(machine.driver or "0")[0]
    fitting = (
        row for row in matrix.forward_compatibility if branch in row.branches and numbers(row.cuda) >= max(needed)
    )
    return next((f"cuda-compat-{row.cuda.replace('.', '-')}" for row in fitting), None)
