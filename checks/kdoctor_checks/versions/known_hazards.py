from collections.abc import Collection, Iterator, Mapping

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.facts import Environment, Gpu, Gpus, Libraries, Packages, Target, TensorFlowBuild
from kdoctor.matrix.model import KnownBad, VersionMatrix
from kdoctor.matrix.values import specifier
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._builds import judge_gpus, versions_there
from kdoctor_checks._versions import first_short, parse_version


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
    """No job is known to fail with these versions and GPUs.

    Why: some combinations work until the job uses one feature, most often XLA (jit_compile=True). TensorFlow 2.21 with
    cuDNN before 9.10.2 finds no algorithm for convolutions under XLA. On Blackwell workstation GPUs, the XLA compiler
    terminates the process. A smoke training that does not use the feature passes.
    Remedy: install the version that fixes it, or do not use the feature.
    Sources:
        https://github.com/aws/deep-learning-containers/pull/6417
        https://github.com/tensorflow/tensorflow/issues/111958
    Failure modes: cudnn_too_old_tf221, blackwell_xla_ptx85
    """
    subject = f"tensorflow {tensorflow.version or '(version unknown)'}"
    if parse_version(tensorflow.version) is None:
        yield Unjudged(subject=subject, reason="its version is not valid")
        return
    there = versions_there(tensorflow, packages, libraries)
    # Other checks judge whether a GPU is registered, and what Keras does to some jobs.
    rows = [
        row for row in matrix.known_bad if row.job is not None and row.effect != "no-gpu" and set(row.when) != {"keras"}
    ]
    cudnn_unread = libraries.cuda_build and "cudnn" not in there
    if cudnn_unread and any("cudnn" in row.when and _holds(row, there, besides={"cudnn"}) for row in rows):
        yield Unjudged(subject="libcudnn", reason="its version was not read")
    general = [row for row in rows if "capability" not in row.when and _holds(row, there)]
    yield from (_outcome(row, subject, packages, target) for row in general)

    def judge(gpu: Gpu, capability: str) -> Outcome:
        versions = {**there, "capability": capability}
        row = next((row for row in rows if "capability" in row.when and _holds(row, versions)), None)
        if row is None:
            return Evidence(subject=gpu.subject, observed=f"no job is known to fail on compute capability {capability}")
        return _outcome(row, gpu.subject, packages, target)

    outcomes = list(judge_gpus(gpus, environment, judge))
    yield from outcomes
    if gpus.devices and not outcomes:
        yield Unjudged(subject=subject, reason="no GPU is visible to the job")
    if outcomes and not general and not cudnn_unread and all(isinstance(outcome, Evidence) for outcome in outcomes):
        observed = (
            f"not in the list of combinations that fail with some jobs ({counted(len(rows), 'entry', 'entries')})"
        )
        yield Evidence(subject=subject, observed=observed)


def _holds(row: KnownBad, versions: Mapping[str, str], besides: Collection[str] = ()) -> bool:
    return all(
        name in versions and specifier(spec).contains(versions[name], prereleases=True)
        for name, spec in row.when.items()
        if name not in besides
    )


def _outcome(row: KnownBad, subject: str, packages: Packages, target: Target) -> Finding | Unjudged:
    if row.effect == "unproven":
        return Unjudged(subject=subject, reason=f"may fail with {row.job}: {row.symptom}; {row.fix}")
    names = [line.partition("=")[0] for line in row.install]
    code_only = Rollback.nothing("not needed (only the job's code changes)")
    return Finding(
        subject=subject,
        observed=f"fails with {row.job} ({row.symptom})",
        brief=first_short(f"fails with {row.job}", "known to fail with some jobs"),
        expected="versions with which no job is known to fail",
        remedy=Remedy(
            summary=f"Install {row.fix}." if row.install else f"{row.fix[:1].upper()}{row.fix[1:]}.",
            action=Action.REINSTALL if row.install else Action.CHANGE_CODE,
            commands=(install(target, packages, *row.install),) if row.install else (),
        ),
        rollback=restore(target, packages, *names) if names else code_only,
    )
