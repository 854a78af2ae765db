from collections.abc import Iterator
from dataclasses import replace

from kdoctor.check import check
from kdoctor.commands.packages import installer_of
from kdoctor.facts import Packages, Target
from kdoctor.model import Assumptions, Finding, NotApplicable, Outcome, Severity
from kdoctor_checks._expected import install_agreed, judge_version


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
    judged = {
        name: judge_version(name, _version(packages, name), wanted, *install_agreed(target, packages, {name: wanted}))
        for name, wanted in assumptions.packages.items()
    }
    by_tool: dict[str, dict[str, str]] = {}
    """What differs, by the tool that owns it: one command installs all of it."""
    for name, outcome in judged.items():
        if isinstance(outcome, Finding):
            by_tool.setdefault(installer_of(target, packages, name), {})[name] = assumptions.packages[name]
    for name, outcome in judged.items():
        together = by_tool.get(installer_of(target, packages, name), {})
        if isinstance(outcome, Finding) and len(together) > 1:
            remedy, rollback = install_agreed(target, packages, together)
            outcome = replace(outcome, remedy=remedy, rollback=rollback)  # noqa: PLW2901 - the same finding
        yield outcome


def _version(packages: Packages, name: str) -> str | None:
    found = packages.find(name)
    return (found.version or "(not in its metadata)") if found else None
