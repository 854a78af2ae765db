"""What one TensorFlow release needs: driver, Python, GPUs, libraries."""

from packaging.version import Version

from kdoctor.errors import UsageError
from kdoctor.matrix.compatibility import judge
from kdoctor.matrix.gpus import NamedGpu
from kdoctor.matrix.kernels import weakest
from kdoctor.matrix.known_bad import may_meet
from kdoctor.matrix.model import GpuKind, KnownBad, Release, VersionMatrix
from kdoctor.matrix.values import numbers
from kdoctor.matrix.verdict import Machine
from kdoctor.records import record

_MINOR = 2
"""Numbers in the name of a minor release, such as 2.19."""


class UnknownReleaseError(UsageError):
    """The matrix has no row for this TensorFlow."""


@record
class Needs:
    """What a release needs."""

    release: Release
    oldest_driver: str | None
    """The oldest driver, for GPUs that it has machine code for."""
    ptx_driver: str | None
    """The oldest driver that compiles its PTX, for all newer GPUs."""
    by_machine_code: tuple[GpuKind, ...]
    """GPUs that it has machine code for."""
    by_ptx: tuple[GpuKind, ...]
    """GPUs that run it with PTX, without those in ``excluded``."""
    excluded: tuple[GpuKind, ...]
    """GPUs that it has code for but is known to fail on, or that only come with an Arm processor."""
    sonames: dict[str, str]
    """The libraries that it loads: short name to file name."""
    known_bad: tuple[KnownBad, ...]
    """Known-bad combinations of it, or of what is installed with it."""
    command: str
    """The command that installs it for current GPUs."""
    commands: tuple[str, ...]
    """With the environment variables that it needs."""


def find_release(matrix: VersionMatrix, text: str) -> Release:
    """The release that a text names: ``2.19.1``, ``2.19`` (its newest patch release), ``nightly``.

    Raises:
        UnknownReleaseError: the matrix has no such release, or the text is not a version.
    """
    wanted = text.strip().lower()
    if wanted in ("nightly", "tf-nightly"):
        found = [release for release in matrix.releases if release.prerelease]
        if found:
            return found[-1]
    try:
        version = Version(wanted)
    except ValueError:  # not a version, or one of thousands of digits
        raise UnknownReleaseError(f"{text!r} is not a TensorFlow version", hint=_known(matrix)) from None
    if len(version.release) == _MINOR and not version.is_prerelease:
        fitting = [
            item for item in matrix.releases if not item.prerelease and item.key.release[:_MINOR] == version.release
        ]
    else:
        fitting = [item for item in matrix.releases if item.key == version]
    coming = [item for item in matrix.releases if item.prerelease and item.key.release[:_MINOR] == version.release]
    if fitting or coming:
        return (fitting or coming)[-1]
    first = matrix.releases[0]
    begins = f", which begins at {first.version}" if version < first.key else ""
    raise UnknownReleaseError(
        f"TensorFlow {text} is not in the matrix{begins}",
        hint=f"{_known(matrix)} Add rows with --matrix FILE. kdoctor check reads an installed build itself.",
    )


def requirements(matrix: VersionMatrix, text: str) -> Needs:
    """What the release with that name needs.

    Raises:
        UnknownReleaseError: the matrix has no row for it.
    """
    release = find_release(matrix, text)
    drivers = [matrix.ptx_driver(kernels, release.cuda) for kernels in release.kernels]
    known = [driver for driver in drivers if driver is not None]
    runs = [(kind, weakest(release.kernels, kind.capability)) for kind in matrix.gpus]
    excluded = [kind for kind, code in runs if code is not None and not _may_run(matrix, release, kind)]
    verdict = judge(matrix, release, Machine())
    return Needs(
        release=release,
        oldest_driver=matrix.oldest_driver(release.cuda),
        ptx_driver=max(known, key=numbers) if len(known) == len(drivers) else None,
        by_machine_code=tuple(kind for kind, code in runs if code == "machine code" and kind not in excluded),
        by_ptx=tuple(kind for kind, code in runs if code == "PTX" and kind not in excluded),
        excluded=tuple(excluded),
        sonames=matrix.sonames(release),
        known_bad=_concerning(matrix, release),
        command=verdict.command,
        commands=verdict.commands,
    )


def _may_run(matrix: VersionMatrix, release: Release, kind: GpuKind) -> bool:
    """Whether it runs on this kind of GPU, ignoring problems of the release itself."""
    gpu = NamedGpu(name=kind.architecture, capability=kind.capability, arm_only=kind.arm_only)
    verdict = judge(matrix, release, Machine(gpus=(gpu,)))
    alone = {row.id for row in matrix.known_bad if set(row.when) == {"tensorflow"}}
    return all(reason.failure in alone for reason in verdict.against)


def _concerning(matrix: VersionMatrix, release: Release) -> tuple[KnownBad, ...]:
    """The known-bad combinations that this release may match, on some GPU and with some resolution."""
    kinds = tuple(NamedGpu(name=kind.architecture, capability=kind.capability) for kind in matrix.gpus)
    machine = Machine(gpus=kinds)
    return tuple(row for row in matrix.known_bad if may_meet(row, release, machine, {}))


def _known(matrix: VersionMatrix) -> str:
    newest: dict[tuple[int, ...], str] = {}
    for release in matrix.releases:
        newest[release.key.release[:2]] = release.version
    return f"Known releases: {', '.join(newest.values())} and their older patch releases."
