"""Whether one distribution alone brought TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator

from packaging.requirements import InvalidRequirement, Requirement

from kdoctor.check import check
from kdoctor.commands.packages import install, restore, uninstall
from kdoctor.facts import Package, Packages, Target, TensorFlowBuild, canonical_name
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity

_VARIANTS = frozenset({
    "intel-tensorflow", "tensorflow", "tensorflow-aarch64", "tensorflow-cpu", "tensorflow-cpu-aws", "tensorflow-gpu",
    "tensorflow-intel", "tensorflow-macos", "tensorflow-rocm", "tf-nightly", "tf-nightly-cpu", "tf-nightly-gpu",
    "tf-nightly-intel",
})  # fmt: skip
"""Distributions that bring the folder ``tensorflow``, or ask for one that does."""


@check("versions.one-tensorflow", severity=Severity.ERROR, requires=["versions.tensorflow-installed"])
def one_tensorflow(packages: Packages, tensorflow: TensorFlowBuild, target: Target) -> Iterator[Outcome]:
    """One TensorFlow distribution is installed, once, and nothing of another is left.

    Why: tensorflow, tensorflow-cpu, tf-nightly and their kin all write into one folder. The last one installed wins
    file by file, and removing one of them takes files from the other: the import fails, or a build for the CPU stands
    where the metadata says CUDA.
    Remedy: uninstall all of them, remove what is left of the folder, and install the one that the job needs.
    Sources:
        https://www.tensorflow.org/install/pip
        https://packaging.python.org/en/latest/specifications/recording-installed-packages/
    """
    found = [package for package in packages.installed if package.name in _VARIANTS]
    asked_for = {name for package in found for name in _asks_for(package)}
    # On some platforms "tensorflow" holds nothing itself and asks for the distribution that does (tensorflow-intel).
    apart = [package for package in found if package.name not in asked_for]
    names = [_words(package) for package in apart]
    if len(apart) <= 1:
        subject = tensorflow.distribution or "tensorflow"
        observed = names[0] if names else f"{subject} {tensorflow.version}, which another distribution asks for"
        yield Evidence(subject=subject, observed=f"{observed}, and no other")
        return
    kept = tensorflow.distribution or "tensorflow"
    version = f"=={tensorflow.version}" if tensorflow.version else ""
    every = sorted({package.name for package in apart})
    wanted = f"tensorflow[and-cuda]{version}" if tensorflow.cuda_build else f"{kept}{version}"
    yield Finding(
        subject="tensorflow",
        observed=f"{len(apart)} distributions: {', '.join(names)}",
        expected="one",
        remedy=Remedy(
            summary="Uninstall all of them (pip removes one installation at a time: repeat it until none is left), and "
            "install the one that the job needs.",
            action=Action.REINSTALL,
            commands=(*[uninstall(target, packages, *every)] * _repetitions(apart), install(target, packages, wanted)),
        ),
        rollback=restore(target, packages, *every),
    )


def _words(package: Package) -> str:
    return f"{package.name} {package.version or '(no version in its metadata)'}"


def _repetitions(packages: list[Package]) -> int:
    names = [package.name for package in packages]
    return max(names.count(name) for name in names)


def _asks_for(package: Package) -> Iterator[str]:
    for line in package.requires:
        try:
            yield canonical_name(Requirement(line).name)
        except InvalidRequirement:
            continue
