"""Outcomes for the requirements of distributions."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.commands.packages import install, restore
from kdoctor.facts import Packages, Target
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._requirements import Conflict, Needs, conflicts


def judge_needs(needs: Needs, packages: Packages, target: Target, *, subject: str, count: int) -> Iterator[Outcome]:
    """A finding for each unmet requirement; evidence about the subject if there is none.

    Args:
        needs: the requirements to judge.
        packages: the installed distributions.
        target: the interpreter that they are installed for.
        subject: what the evidence is about.
        count: number of distributions that have these requirements.
    """
    yield from needs.unjudged
    bad = list(conflicts(needs, packages))
    for conflict in bad:
        yield conflict if isinstance(conflict, Unjudged) else _finding(conflict, packages, target)
    if not bad:
        requirements, owners = counted(needs.count, "requirement"), counted(count, "distribution")
        yield Evidence(subject=subject, observed=f"{requirements} of {owners} met")


def _finding(conflict: Conflict, packages: Packages, target: Target) -> Finding:
    return Finding(
        subject=conflict.name,
        observed=f"version {conflict.installed} is installed" if conflict.installed else "not installed",
        expected=conflict.expected,
        remedy=Remedy(
            summary=f"Install a version of {conflict.name} that meets all requirements. If there is none, change the "
            "version of a package that requires it.",
            action=Action.REINSTALL,
            commands=(install(target, packages, f"{conflict.name}{conflict.specifiers}"),),
        ),
        rollback=restore(target, packages, conflict.name),
    )
