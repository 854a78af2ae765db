"""Whether the TensorFlow build holds code for the GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.facts import Environment, Gpu, Gpus, Packages, Target, TensorFlowBuild
from kdoctor.matrix.model import KnownBad, VersionMatrix, specifier
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._builds import Code, code_of, gpus_of_job
from kdoctor_checks._gpus import unread
from kdoctor_checks._versions import numbers, parse_version


@check("versions.gpu-code", severity=Severity.ERROR, needs_gpus=True, requires=["versions.driver-for-cuda"])
def gpu_code(
    tensorflow: TensorFlowBuild,
    gpus: Gpus,
    environment: Environment,
    packages: Packages,
    target: Target,
    matrix: VersionMatrix,
) -> Iterator[Outcome]:
    """TensorFlow holds code for every GPU: machine code, or PTX that the driver compiles.

    Why: a GPU that is older than every architecture of the build has nothing to run ("no kernel image is available").
    A newer one needs PTX, and for Blackwell the PTX of releases before 2.21 does not load.
    Remedy: install a TensorFlow that was built for the GPU (kdoctor matrix names it), or hide the GPU from the job.
    Sources:
        https://docs.nvidia.com/cuda/cuda-c-programming-guide/#application-compatibility
        https://github.com/tensorflow/tensorflow/issues/89272
    Failure modes: blackwell_invalid_ptx
    """
    code = code_of(tensorflow, matrix)
    if code is None:
        reason = tensorflow.unreadable or "neither the build nor the version matrix says what it holds code for"
        yield Unjudged(subject=f"tensorflow {tensorflow.version or '(version unknown)'}", reason=reason)
        return
    for gpu in gpus_of_job(gpus, environment):
        if missing := unread(gpu, "compute_capability"):
            yield missing
        elif numbers(gpu.compute_capability) is None:
            yield Unjudged(subject=gpu.subject, reason=f"{gpu.compute_capability!r} is no compute capability")
        else:
            yield _judge(gpu, code, _Build(tensorflow, packages, target, matrix))
    if not gpus.devices:
        yield Unjudged(subject="GPUs", reason=f"the driver lists none ({gpus.error or gpus.state})")


class _Build:
    """What is installed, and what is known of it."""

    def __init__(self, tensorflow: TensorFlowBuild, packages: Packages, target: Target, matrix: VersionMatrix) -> None:
        self.tensorflow, self.packages, self.target, self.matrix = tensorflow, packages, target, matrix

    def known_bad(self, capability: str) -> KnownBad | None:
        """The combination of this release and that capability that fails whatever the job does, if there is one."""
        version = parse_version(self.tensorflow.version)
        if version is None:
            return None
        there = {"tensorflow": str(version), "capability": capability}
        rows = (row for row in self.matrix.known_bad if set(row.when) == set(there) and row.job is None)
        return next((row for row in rows if _holds(row, there)), None)

    def newest_for(self, capability: str) -> str:
        """The newest release that has code for that capability and is not known to fail, as a requirement."""
        for release in reversed(self.matrix.releases):
            code = Code(cubins=release.cubins, ptx=release.ptx, read_from="the version matrix")
            there = {"tensorflow": release.version, "capability": capability}
            bad = any(set(row.when) == set(there) and row.job is None and _holds(row, there)
                      for row in self.matrix.known_bad)  # fmt: skip
            if code.runs_by(capability) and not bad and not release.prerelease:
                return f"tensorflow{'[and-cuda]' if release.and_cuda else ''}=={release.version}"
        return "tensorflow[and-cuda]"


def _holds(row: KnownBad, there: dict[str, str]) -> bool:
    return all(specifier(spec).contains(there[name], prereleases=True) for name, spec in row.when.items())


def _judge(gpu: Gpu, code: Code, build: _Build) -> Outcome:
    capability = gpu.compute_capability or ""
    by, bad = code.runs_by(capability), build.known_bad(capability)
    if by and not bad:
        return Evidence(subject=gpu.subject, observed=f"compute capability {capability} by {by}")
    why = f"TensorFlow {build.tensorflow.version} holds {code.words} ({code.read_from})"
    if bad:
        why = f"TensorFlow {build.tensorflow.version} is known to fail on it: {bad.symptom}"
    wanted = build.newest_for(capability)
    return Finding(
        subject=gpu.subject,
        observed=f"{gpu.name or 'GPU'} has compute capability {capability}; {why}",
        expected="a build with code for it",
        remedy=Remedy(
            summary=(f"Use {bad.fix}." if bad else "Install a release with code for this GPU.")
            + " kdoctor matrix shows which releases run here; the GPU can also be hidden with CUDA_VISIBLE_DEVICES.",
            action=Action.REINSTALL,
            commands=("kdoctor matrix", install(build.target, build.packages, wanted)),
        ),
        rollback=restore(build.target, build.packages, build.tensorflow.distribution or "tensorflow"),
    )
