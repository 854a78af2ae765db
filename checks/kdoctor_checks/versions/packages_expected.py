from collections.abc import Iterator, Mapping

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

    def judge(name: str, together: Mapping[str, str]) -> Outcome:
        fix = install_agreed(target, packages, together)
        return judge_version(name, _version(packages, name), assumptions.packages[name], *fix)

    by_tool: dict[str, dict[str, str]] = {}
    """What differs, by the tool that owns it: one command installs all of it."""
    for name, wanted in assumptions.packages.items():
        if isinstance(judge(name, {name: wanted}), Finding):
            by_tool.setdefault(installer_of(target, packages, name), {})[name] = wanted
    for name, wanted in assumptions.packages.items():
        differing = by_tool.get(installer_of(target, packages, name), {})
        yield judge(name, differing if name in differing else {name: wanted})


def _version(packages: Packages, name: str) -> str | None:
    found = packages.find(name)
    return (found.version or "(not in its metadata)") if found else None
