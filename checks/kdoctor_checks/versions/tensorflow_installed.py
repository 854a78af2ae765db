from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.facts import Packages, Target, TensorFlowBuild
from kdoctor.model import Assumptions, Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._versions import parse_version


@check("versions.tensorflow-installed", severity=Severity.ERROR)
def tensorflow_installed(
    tensorflow: TensorFlowBuild, packages: Packages, target: Target, assumptions: Assumptions
) -> Iterator[Outcome]:
    """TensorFlow is installed in the target environment.

    Why: without TensorFlow the job stops at its first import. If its metadata is missing (a copied or partly removed
    installation), its version is unknown, and neither pip nor a lock file can restore it.
    Remedy: install TensorFlow with its CUDA libraries, or check another environment with --python.
    Source: https://www.tensorflow.org/install/pip
    """
    subject = f"tensorflow in {target.prefix}"
    if not tensorflow.installed:
        has_cuda = assumptions.expects_gpus and target.platform == "linux-x86_64"
        yield Finding(
            subject="TensorFlow",
            observed=f"not found by {target.executable} ({target.chosen_by})",
            brief="not installed in the examined environment",
            expected="TensorFlow 2",
            remedy=Remedy.reinstall(
                f"Install TensorFlow{' with its CUDA libraries' if has_cuda else ''}, {_instead(packages)}.",
                _installation(packages, target, has_cuda=has_cuda),
            ),
            rollback=restore(target, packages, "tensorflow"),
        )
    elif parse_version(tensorflow.version) is None:
        version = f"version {tensorflow.version!r}" if tensorflow.version else "no version in its metadata"
        why = f": {tensorflow.unreadable}" if tensorflow.unreadable else ""
        yield Unjudged(subject=subject, reason=f"{tensorflow.location or 'the package'} has {version}{why}")
    else:
        name = tensorflow.distribution or "tensorflow"
        brief = f"{'TensorFlow' if name == 'tensorflow' else name} {tensorflow.version}"
        yield Evidence(subject=subject, observed=f"{name} {tensorflow.version}", brief=brief)


def _instead(packages: Packages) -> str:
    """What else may be meant: a job on JAX, if both Keras and JAX are installed."""
    other = "check another environment with --python"
    return f"{other}, or set KERAS_BACKEND=jax" if packages.find("jax") and packages.find("keras") else f"or {other}"


def _installation(packages: Packages, target: Target, *, has_cuda: bool) -> str:
    found = packages.find("tensorflow")
    if found and found.version:  # its files were removed, and pip regards it as installed
        return install(target, packages, "--force-reinstall", "--no-deps", f"tensorflow=={found.version}")
    return install(target, packages, f"tensorflow{'[and-cuda]' if has_cuda else ''}")
