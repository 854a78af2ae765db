"""Whether the interpreter is one that the checklist and TensorFlow support."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
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
    """The Python is one that the checklist and the installed TensorFlow support.

    Why: TensorFlow's compiled modules exist for some Python releases only. One that was copied or forced into
    another release does not import, or imports and fails later; and a job that was tested under one Python is not
    tested under another.
    Remedy: make an environment with a Python that TensorFlow supports, and install the job's packages in it.
    Source: https://packaging.python.org/en/latest/specifications/core-metadata/#requires-python
    """
    demands = []
    if assumptions.python is not None:
        demands.append(("the checklist", assumptions.python))
    if tensorflow.installed:
        found = packages.find(tensorflow.distribution or "tensorflow")
        if found and found.requires_python:
            demands.append((f"{found.name} {found.version}", found.requires_python))
        else:
            yield Unjudged(subject="tensorflow", reason="its metadata does not say which Python it needs")
    elif not demands:
        yield NotApplicable(reason="no TensorFlow is installed, and the checklist names no Python")
    for who, wanted in demands:
        yield _judge(target, who, wanted)


def _judge(target: Target, who: str, wanted: str) -> Outcome:
    subject = f"Python for {who}"
    version, specifiers = parse_version(target.version), parse_specifiers(wanted)
    if version is None or specifiers is None:
        return Unjudged(subject=subject, reason=f"cannot compare Python {target.version!r} with {wanted!r}")
    if meets(version, specifiers):
        return Evidence(subject=subject, observed=f"Python {target.version} is {wanted}")
    return Finding(
        subject=subject,
        observed=f"Python {target.version} ({target.executable})",
        expected=f"Python {wanted}",
        remedy=Remedy(
            summary=f"Make an environment with a Python that is {wanted}, install the job's packages in it, and "
            "examine it with --python.",
            action=Action.REINSTALL,
            commands=("uv venv --python '<version>' '<folder>'", "kdoctor check --python '<folder>/bin/python'"),
        ),
        rollback=Rollback.nothing(f"a new environment leaves {target.prefix} as it is"),
    )
