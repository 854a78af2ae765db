from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.packages import create_environment
from kdoctor.facts import Packages, Target, TensorFlowBuild
from kdoctor.model import (
    Action,
    Assumptions,
    Evidence,
    Finding,
    NotApplicable,
    Outcome,
    Remedy,
    Rollback,
    Severity,
    Unjudged,
)
from kdoctor_checks._versions import meets, parse_specifiers, parse_version


@check("versions.python-supported", severity=Severity.ERROR, judges=("python",))
def python_supported(
    target: Target, packages: Packages, tensorflow: TensorFlowBuild, assumptions: Assumptions
) -> Iterator[Outcome]:
    """The checklist and the installed TensorFlow support this Python version.

    Why: the compiled modules of TensorFlow exist for some Python releases only. If they were copied into another
    release, the import fails, or a later step does. A job that was tested with one Python is untested with another.
    Remedy: create an environment with a Python that TensorFlow supports, and install the job's packages in it.
    Source: https://packaging.python.org/en/latest/specifications/core-metadata/#requires-python
    """
    demands = [("the checklist", assumptions.python)] if assumptions.python is not None else []
    if tensorflow.installed:
        found = packages.find(tensorflow.distribution or "tensorflow")
        if found and found.requires_python:
            demands.append((f"{found.name} {found.version}", found.requires_python))
        else:
            yield Unjudged(subject="tensorflow", reason="its metadata does not state which Python it requires")
    elif not demands:
        yield NotApplicable(reason="TensorFlow is not installed, and the checklist names no Python")
    for owner, wanted in demands:
        yield _judge(target, owner, wanted)


def _judge(target: Target, owner: str, wanted: str) -> Outcome:
    subject = f"Python for {owner}"
    version, specifiers = parse_version(target.version), parse_specifiers(wanted)
    if version is None or specifiers is None:
        return Unjudged(subject=subject, reason=f"cannot compare Python {target.version!r} with {wanted!r}")
    if meets(version, specifiers):
        return Evidence(subject=subject, observed=f"Python {target.version} meets {wanted}")
    return Finding(
        subject=subject,
        observed=f"Python {target.version} is not supported ({target.executable})",
        expected=f"Python {wanted}",
        remedy=Remedy(
            summary=f"Create an environment with Python {wanted}, install the job's packages in it, and check it.",
            action=Action.REINSTALL,
            commands=(
                create_environment("uv", "<version>", "<folder>"),
                "kdoctor check --python '<folder>/bin/python'",
            ),
        ),
        rollback=Rollback.nothing(f"not needed (a new environment leaves {target.prefix} unchanged)"),
    )
