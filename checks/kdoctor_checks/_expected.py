"""Comparisons with the values in the checklist."""

from collections.abc import Mapping

from kdoctor.commands.packages import install, restore
from kdoctor.facts import Packages, Target
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Rollback, Unjudged
from kdoctor_checks._versions import first_short, meets, parse_specifiers, parse_version

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
    observed = f"version {found}" if found else "not found"
    return Finding(
        subject=subject,
        observed=observed,
        expected=wanted,
        remedy=remedy,
        rollback=rollback,
        brief=first_short(f"{observed}, the checklist expects {wanted}", f"{observed}, which the checklist excludes"),
    )


def install_agreed(target: Target, packages: Packages, wanted: Mapping[str, str]) -> tuple[Remedy, Rollback]:
    """Install the versions in the checklist with one command, and the rollback of that."""
    command = install(target, packages, *(f"{name}{specifier}" for name, specifier in wanted.items()))
    return Remedy.reinstall(f"Install the agreed version, {OR_AGREE}", command), restore(target, packages, *wanted)


def other_value(
    subject: str, found: str, wanted: str, commands: tuple[str, str], where: str = "in the script or unit of the job"
) -> Finding:
    """The finding that a setting does not have the value in the checklist.

    Args:
        subject: the setting.
        found: its value.
        wanted: the value in the checklist.
        commands: the command that sets the wanted value, and the one that restores the found value.
        where: the place of the setting.
    """
    return Finding(
        subject=subject,
        observed=found,
        expected=wanted,
        remedy=Remedy.configure(f"Set it {where}, {OR_AGREE}", *(commands[:1])),
        rollback=Rollback.to("restore the recorded value", commands[1]),
        brief=first_short(f"{found}, the checklist expects {wanted}", "not the value in the checklist"),
    )
