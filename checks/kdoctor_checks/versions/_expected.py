"""Comparisons of installed versions with those in the checklist."""

from __future__ import annotations

from kdoctor.commands.packages import install, restore
from kdoctor.facts import Packages, Target
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Rollback, Unjudged
from kdoctor_checks._versions import meets, parse_specifiers, parse_version

OR_AGREE = "or change the checklist and have it reviewed."


def judge_version(subject: str, found: str | None, wanted: str, remedy: Remedy, rollback: Rollback) -> Outcome:
    """Whether the found version (None: not found) meets the specifier in the checklist."""
    specifiers, version = parse_specifiers(wanted), parse_version(found)
    if specifiers is None:
        return Unjudged(subject=subject, reason=f"{wanted!r} in the checklist is not a version specifier")
    if found is not None and version is None:
        return Unjudged(subject=subject, reason=f"version {found!r} is not valid (PEP 440)")
    if version is not None and meets(version, specifiers):
        return Evidence(subject=subject, observed=f"{found} ({wanted})")
    return Finding(subject=subject, observed=found or "not found", expected=wanted, remedy=remedy, rollback=rollback)


def install_agreed(target: Target, packages: Packages, name: str, wanted: str) -> tuple[Remedy, Rollback]:
    """Install the version in the checklist, and the rollback of that."""
    remedy = Remedy(
        summary=f"Install the agreed version, {OR_AGREE}",
        action=Action.REINSTALL,
        commands=(install(target, packages, f"{name}{wanted}"),),
    )
    return remedy, restore(target, packages, name)
