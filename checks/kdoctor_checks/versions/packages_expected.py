"""Whether the packages have the versions in the checklist."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.facts import Packages, Target
from kdoctor.model import Action, Assumptions, Evidence, Finding, NotApplicable, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._versions import meets, parse_specifiers, parse_version


@check(
    "versions.packages-expected",
    severity=Severity.ERROR,
    requires=["versions.tensorflow-installed"],
    judges=("packages",),
)
def packages_expected(packages: Packages, target: Target, assumptions: Assumptions) -> Iterator[Outcome]:
    """The packages have the versions in the checklist.

    Why: the checklist was agreed on, and the job was tested, with these versions. Earlier passing runs say nothing
    about other versions.
    Remedy: install the agreed version, or change the checklist.
    Source: https://packaging.python.org/en/latest/specifications/version-specifiers/
    """
    if not assumptions.packages:
        yield NotApplicable(reason="the checklist names no packages")
    for name, wanted in assumptions.packages.items():
        yield _judge(name, wanted, packages, target)


def _judge(name: str, wanted: str, packages: Packages, target: Target) -> Outcome:
    specifiers, found = parse_specifiers(wanted), packages.find(name)
    version = parse_version(found.version) if found else None
    if specifiers is None:
        return Unjudged(subject=name, reason=f"{wanted!r} in the checklist is not a version specifier")
    if found and version is None:
        invalid = f"version {found.version!r} is not valid (PEP 440)"
        return Unjudged(subject=name, reason=invalid if found.version else "its metadata has no version")
    if version and meets(version, specifiers):
        return Evidence(subject=name, observed=f"{version} ({wanted})")
    return Finding(
        subject=name,
        observed=f"version {version} is installed" if version else "not installed",
        expected=f"{name}{wanted}",
        remedy=Remedy(
            summary="Install the agreed version, or change the checklist and have it reviewed.",
            action=Action.REINSTALL,
            commands=(install(target, packages, f"{name}{wanted}"),),
        ),
        rollback=restore(target, packages, found.name if found else name),
    )
