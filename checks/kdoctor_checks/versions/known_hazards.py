"""Whether the environment fails with jobs of some kind."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.facts import Environment, Gpu, Gpus, Libraries, Packages, Target, TensorFlowBuild
from kdoctor.matrix.model import KnownBad, VersionMatrix, specifier
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._builds import gpus_of_job, versions_there
from kdoctor_checks._gpus import unread
from kdoctor_checks._versions import parse_version


@check("versions.known-hazards", severity=Severity.WARNING, needs_gpus=True, requires=["versions.cudnn-for-gpus"])
def known_hazards(
    tensorflow: TensorFlowBuild,
    libraries: Libraries,
    gpus: Gpus,
    environment: Environment,
    packages: Packages,
    target: Target,
    matrix: VersionMatrix,
) -> Iterator[Outcome]:
    """No job of any kind is known to fail with these versions on these GPUs.

    Why: some combinations train well until the job uses one feature, most often XLA (jit_compile=True): TensorFlow 2.21
    with a cuDNN older than 9.10.2 finds no way to run a convolution, and on Blackwell workstation GPUs the compiler
    ends the process. A smoke training that does not use the feature passes.
    Remedy: install the version that ends it, or leave the feature out.
    Sources:
        https://github.com/aws/deep-learning-containers/pull/6417
        https://github.com/tensorflow/tensorflow/issues/111958
    Failure modes: cudnn_too_old_tf221, blackwell_xla_ptx85
    """
    subject = f"tensorflow {tensorflow.version or '(version unknown)'}"
    if parse_version(tensorflow.version) is None:
        yield Unjudged(subject=subject, reason="its version cannot be read")
        return
    there = versions_there(tensorflow, packages, libraries)
    # Whether a GPU is registered, the libraries themselves show; what Keras does to some jobs, the trainings.
    rows = [
        row for row in matrix.known_bad if row.job is not None and row.effect != "no-gpu" and set(row.when) != {"keras"}
    ]
    cudnn_unread = libraries.cuda_build and "cudnn" not in there
    if cudnn_unread and any("cudnn" in row.when and _holds(row, there, besides={"cudnn"}) for row in rows):
        yield Unjudged(subject="libcudnn", reason="its version was not read")
    bad = 0
    for row in rows:
        if "capability" not in row.when and _holds(row, there):
            bad += 1
            yield _outcome(row, subject, packages, target)
    for gpu in gpus_of_job(gpus, environment):
        outcome = _judge(gpu, rows, there, (packages, target))
        bad += not isinstance(outcome, Evidence)
        yield outcome
    if not gpus.devices:
        yield Unjudged(subject="GPUs", reason=f"the driver lists none ({gpus.error or gpus.state})")
    elif not bad and not cudnn_unread:
        yield Evidence(subject=subject, observed=f"in none of {len(rows)} combinations that fail with some jobs")


def _judge(
    gpu: Gpu, rows: list[KnownBad], there: Mapping[str, str], installed: tuple[Packages, Target]
) -> Finding | Unjudged | Evidence:
    if missing := unread(gpu, "compute_capability"):
        return missing
    versions = {**there, "capability": gpu.compute_capability or ""}
    row = next((row for row in rows if "capability" in row.when and _holds(row, versions)), None)
    if row is None:
        return Evidence(subject=gpu.subject, observed=f"no job is known to fail on {gpu.compute_capability}")
    return _outcome(row, gpu.subject, *installed)


def _holds(row: KnownBad, versions: Mapping[str, str], besides: Collection[str] = ()) -> bool:
    return all(
        name in versions and specifier(spec).contains(versions[name], prereleases=True)
        for name, spec in row.when.items()
        if name not in besides
    )


def _outcome(row: KnownBad, subject: str, packages: Packages, target: Target) -> Finding | Unjudged:
    if row.effect == "unproven":
        return Unjudged(subject=subject, reason=f"with {row.job}: {row.symptom} ({row.fix})")
    names = [line.partition("=")[0] for line in row.install]
    return Finding(
        subject=subject,
        observed=f"with {row.job}: {row.symptom}",
        expected="versions with which no job is known to fail",
        remedy=Remedy(
            summary=f"{row.fix[:1].upper()}{row.fix[1:]}.",
            action=Action.REINSTALL if row.install else Action.CHANGE_CODE,
            commands=(install(target, packages, *row.install),) if row.install else (),
        ),
        rollback=restore(target, packages, *names)
        if names
        else Rollback.nothing("what the job asks for is in its own code"),
    )
