"""How unmet requirements are told."""

from __future__ import annotations

from kdoctor.commands.packages import install, restore
from kdoctor.facts import Packages, Target
from kdoctor.model import Action, Finding, Remedy
from kdoctor_checks._requirements import Conflict


def as_finding(conflict: Conflict, packages: Packages, target: Target) -> Finding:
    """The conflict, with the command that satisfies everyone who needs the distribution, if one version can."""
    observed = f"{conflict.name} {conflict.installed}" if conflict.installed else f"{conflict.name} is not installed"
    return Finding(
        subject=conflict.name,
        observed=observed,
        expected=conflict.expected,
        remedy=Remedy(
            summary=f"Install a version of {conflict.name} that all who need it accept; where none exists, one of "
            "them must change its version.",
            action=Action.REINSTALL,
            commands=(install(target, packages, f"{conflict.name}{conflict.specifiers}"),),
        ),
        rollback=restore(target, packages, conflict.name),
    )
