from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import KerasChoice, Packages, Target, TensorFlowBuild
from kdoctor.model import NotApplicable, Outcome, Severity
from kdoctor_checks.versions._requirements import Needs, judge_needs, needs_of, unmet_needs


@check("versions.other-conflicts", severity=Severity.WARNING)
def other_conflicts(
    packages: Packages, tensorflow: TensorFlowBuild, keras: KerasChoice, target: Target
) -> Iterator[Outcome]:
    """The requirements of all packages besides TensorFlow and Keras are met.

    Why: the job may import these packages. A package with unmet requirements fails when it is used, not when it is
    installed. versions.package-conflicts judges what TensorFlow and Keras require.
    Remedy: install a version that meets all requirements, or uninstall unused packages.
    Source: https://packaging.python.org/en/latest/specifications/dependency-specifiers/
    """
    core_needs = needs_of((tensorflow.distribution or "tensorflow", keras.package), packages, target)
    core = core_needs.visited
    others = {package.name for package in packages.installed if package.name not in core}
    if not others:
        yield NotApplicable(reason="only packages that TensorFlow and Keras require are installed")
        return
    needs = _without(needs_of(others, packages, target), core, packages)
    explained_by: dict[str, tuple[str, ...]] = {
        name: ("versions.package-conflicts",) for name in core_needs.by_name if unmet_needs(name, core_needs, packages)
    }
    explained_by[keras.package] = ("versions.keras-compatible", "versions.package-conflicts")
    explained_by["tensorflow"] = ("versions.tensorflow-installed",)
    yield from judge_needs(
        needs, packages, target, subject=target.prefix, count=len(others), explained_by=explained_by, kept=core
    )


def _without(needs: Needs, core: set[str], packages: Packages) -> Needs:
    """The needs without those of the core distributions."""
    owners = {f"{package.name} {package.version}" for package in packages.installed if package.name in core}
    kept = {name: [need for need in wanted if need.by not in owners] for name, wanted in needs.by_name.items()}
    return Needs(
        by_name={name: wanted for name, wanted in kept.items() if wanted},
        visited=needs.visited - core,
        unjudged=[item for item in needs.unjudged if item.subject not in core],
    )
