from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, Target
from kdoctor.model import Assumptions, NotApplicable, Outcome, Severity
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
    for name, wanted in assumptions.packages.items():
        found = packages.find(name)
        version = (found.version or "(not in its metadata)") if found else None
        remedy, rollback = install_agreed(target, packages, name, wanted)
        yield judge_version(name, version, wanted, remedy, rollback)
