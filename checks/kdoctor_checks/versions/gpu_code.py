from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.facts import Environment, Gpu, Gpus, Packages, Target, TensorFlowBuild
from kdoctor.matrix.kernels import weakest
from kdoctor.matrix.model import KnownBad, VersionMatrix
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._builds import code_of, judge_gpus
from kdoctor_checks._versions import parse_version


@check("versions.gpu-code", severity=Severity.ERROR, needs_gpus=True, requires=["versions.driver-for-cuda"])
def gpu_code(
    tensorflow: TensorFlowBuild,
    gpus: Gpus,
    environment: Environment,
    packages: Packages,
    target: Target,
    matrix: VersionMatrix,
) -> Iterator[Outcome]:
    """TensorFlow has machine code or PTX for every GPU.

    Why: a GPU that is older than every architecture of the build has no code to run ("no kernel image is available").
    A newer GPU needs PTX, and the PTX of releases before 2.21 does not load on Blackwell.
    Remedy: install a TensorFlow that was built for the GPU (see kdoctor matrix), or hide the GPU from the job.
    Sources:
        https://docs.nvidia.com/cuda/cuda-c-programming-guide/#application-compatibility
        https://github.com/tensorflow/tensorflow/issues/89272
    Failure modes: blackwell_invalid_ptx
    """
    code = code_of(tensorflow, matrix)
    if code is None:
        reason = tensorflow.unreadable or "neither the build nor the version matrix lists its GPU code"
        yield Unjudged(subject=f"tensorflow {tensorflow.version or '(version unknown)'}", reason=reason)
        return

    def judge(gpu: Gpu, capability: str) -> Outcome:
        kind, bad = code.runs_by(capability), _known_bad(matrix, tensorflow.version, capability)
        if kind and not bad:
            return Evidence(subject=gpu.subject, observed=f"compute capability {capability} runs {kind}")
        problem = f"is known to fail on it: {bad.symptom}" if bad else f"has {code} (from {code.read_from})"
        summary = f"Use {bad.fix}." if bad else "Install a release with code for this GPU."
        wanted = _newest_for(matrix, capability)
        build = f"TensorFlow {tensorflow.version}"
        return Finding(
            subject=gpu.subject,
            observed=f"{gpu.name or 'GPU'} has compute capability {capability}; {build} {problem}",
            brief=f"{build} {'crashes on this GPU' if bad else 'has no code for this GPU'}",
            expected="a build with code for this GPU",
            remedy=Remedy.reinstall(summary, install(target, packages, wanted), look=("kdoctor matrix",)),
            rollback=restore(target, packages, tensorflow.distribution or "tensorflow"),
        )

    yield from judge_gpus(gpus, environment, judge)


def _known_bad(matrix: VersionMatrix, version: str | None, capability: str) -> KnownBad | None:
    """The matrix's entry that fails with this release on that capability, whatever the job does."""
    parsed = parse_version(version)
    if parsed is None:
        return None
    there = {"tensorflow": str(parsed), "capability": capability}
    rows = matrix.known_bad_for(there)
    return next((row for row in rows if len(row.when) == len(there) and row.job is None), None)


def _newest_for(matrix: VersionMatrix, capability: str) -> str:
    """The newest release with code for that capability that is not known to fail, as a requirement."""
    for release in reversed(matrix.releases):
        has_code = weakest(release.kernels, capability)
        if has_code and not release.prerelease and not _known_bad(matrix, release.version, capability):
            return f"tensorflow{'[and-cuda]' if release.and_cuda else ''}=={release.version}"
    return "tensorflow[and-cuda]"
