"""Whether there is a TensorFlow to train with."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.facts import Packages, Target, TensorFlowBuild
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._versions import parse_version


@check("versions.tensorflow-installed", severity=Severity.ERROR)
def tensorflow_installed(tensorflow: TensorFlowBuild, packages: Packages, target: Target) -> Iterator[Outcome]:
    """TensorFlow is installed in the examined environment.

    Why: a job that imports TensorFlow stops at its first line without it. A package that is there while its
    metadata is not (a half-removed or copied installation) has a version that nobody can tell, and neither pip
    nor a lock file can bring it back.
    Remedy: install TensorFlow with the CUDA libraries that it was built for, or examine the environment that has it
    with --python.
    Source: https://www.tensorflow.org/install/pip
    """
    subject = f"tensorflow in {target.prefix}"
    if not tensorflow.installed:
        yield Finding(
            subject=subject,
            observed=f"no tensorflow package on the path of {target.executable} ({target.chosen_by})",
            expected="TensorFlow 2",
            remedy=Remedy(
                summary="Install TensorFlow with the CUDA libraries that it was built for (without a GPU: plain "
                "'tensorflow'), or examine another environment with --python.",
                action=Action.REINSTALL,
                commands=(install(target, packages, "tensorflow[and-cuda]"),),
            ),
            rollback=restore(target, packages, "tensorflow"),
        )
    elif parse_version(tensorflow.version) is None:
        said = f"version {tensorflow.version!r}" if tensorflow.version else "no version in its metadata"
        why = f": {tensorflow.unreadable}" if tensorflow.unreadable else ""
        yield Unjudged(subject=subject, reason=f"{tensorflow.location or 'the package'} has {said}{why}")
    else:
        name = tensorflow.distribution or "tensorflow"
        yield Evidence(subject=subject, observed=f"{name} {tensorflow.version}")
