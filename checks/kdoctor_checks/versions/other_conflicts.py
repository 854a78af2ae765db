"""Whether the rest of the environment fits together."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import KerasChoice, Packages, Target, TensorFlowBuild
from kdoctor.model import Evidence, NotApplicable, Outcome, Severity, Unjudged
from kdoctor_checks._requirements import Need, Needs, conflicts, needs_of
from kdoctor_checks.versions._conflicts import as_finding


@check("versions.other-conflicts", severity=Severity.WARNING)
def other_conflicts(
    packages: Packages, tensorflow: TensorFlowBuild, keras: KerasChoice, target: Target
) -> Iterator[Outcome]:
    """The packages that TensorFlow and Keras do not need fit together too.

    Why: the job may import them, and a package whose requirements are not met fails when it is used, not when it is
    installed. What TensorFlow and Keras need is judged by versions.package-conflicts.
    Remedy: install a version that all who need it accept, or uninstall what is not used.
    Source: https://packaging.python.org/en/latest/specifications/dependency-specifiers/
    """
    core = needs_of((tensorflow.distribution or "tensorflow", keras.package), packages, target).visited
    others = [package.name for package in packages.installed if package.name not in core]
    if not others:
        yield NotApplicable(reason="nothing is installed besides what TensorFlow and Keras need")
        return
    needs = _without(needs_of(others, packages, target), core, packages)
    yield from (item for item in needs.unjudged if item.subject not in core)
    bad = 0
    for conflict in conflicts(needs, packages):
        bad += 1
        yield conflict if isinstance(conflict, Unjudged) else as_finding(conflict, packages, target)
    if not bad:
        observed = f"{needs.count} requirements of {len(set(others))} other distributions are met"
        yield Evidence(subject=target.prefix, observed=observed)


def _without(needs: Needs, core: set[str], packages: Packages) -> Needs:
    """The needs that distributions of the core do not have themselves."""
    owners = {f"{package.name} {package.version}" for package in packages.installed if package.name in core}
    kept: dict[str, list[Need]] = {}
    for name, wanted in needs.by_name.items():
        outside = [need for need in wanted if need.by not in owners]
        if outside:
            kept[name] = outside
    return Needs(by_name=kept, visited=needs.visited - core, unjudged=needs.unjudged)
