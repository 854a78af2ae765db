"""Whether the environment is a combination of versions that is known to fail."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.facts import Packages, Target, TensorFlowBuild
from kdoctor.matrix.model import KnownBad, VersionMatrix, specifier
from kdoctor.model import Action, Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor_checks._builds import release_of, versions_there
from kdoctor_checks._versions import parse_version

_FAILING = frozenset({"crash", "wrong-results"})
"""Effects that hold whatever the machine. Whether a GPU is registered, the libraries themselves show."""


@check("versions.known-bad", severity=Severity.ERROR, requires=["versions.tensorflow-installed"])
def known_bad(
    tensorflow: TensorFlowBuild, packages: Packages, target: Target, matrix: VersionMatrix
) -> Iterator[Outcome]:
    """The installed versions are no combination that is known to fail, and the version matrix knows this TensorFlow.

    Why: some combinations satisfy every requirement in the metadata and fail all the same: TensorFlow 2.10 and 2.11
    name no upper bound for NumPy, were compiled against NumPy 1, and break when NumPy 2 is there ("A module that was
    compiled using NumPy 1.x cannot be run in NumPy 2").
    Remedy: install the versions that end the failure.
    Sources:
        https://numpy.org/devdocs/numpy_2_0_migration_guide.html
        https://github.com/tensorflow/tensorflow/issues/98406
    Failure modes: numpy2_abi
    """
    subject = f"tensorflow {tensorflow.version or '(version unknown)'}"
    if parse_version(tensorflow.version) is None:
        yield Unjudged(subject=subject, reason="its version cannot be read")
        return
    found = [row for row in matrix.known_bad_for(versions_there(tensorflow, packages)) if _judged_here(row)]
    for row in found:
        yield _finding(row, tensorflow, packages, target)
    if release_of(tensorflow, matrix) is None:
        newest = ", ".join(release.version for release in matrix.releases[-3:])
        reason = f"the version matrix of {matrix.updated} does not know this release (its newest: {newest})"
        yield Unjudged(subject=subject, reason=reason)
    elif not found:
        rows = sum(_judged_here(row) for row in matrix.known_bad)
        yield Evidence(subject=subject, observed=f"in none of the {rows} combinations that are known to fail")


def _judged_here(row: KnownBad) -> bool:
    """Whether versions of distributions alone decide, and no Keras: that is versions.keras-compatible's."""
    machine = {"capability", "cudnn", "python"} & set(row.when)
    return row.job is None and row.effect in _FAILING and not machine and set(row.when) != {"keras"}


def _finding(row: KnownBad, tensorflow: TensorFlowBuild, packages: Packages, target: Target) -> Finding:
    present = {"tensorflow": tensorflow.distribution or "tensorflow"}
    names = [present.get(name, name) for name in row.when]
    wanted = row.install or tuple(f"{name}{spec}" for name, spec in row.ended_by.items())
    return Finding(
        subject=" with ".join(f"{name} {packages.version(name)}" for name in names),
        observed=row.symptom,
        expected=", ".join(f"not {name}{specifier(spec)}" for name, spec in row.when.items()),
        remedy=Remedy(
            summary=f"Install {row.fix}.",
            action=Action.REINSTALL,
            commands=(install(target, packages, *wanted),) if wanted else ("kdoctor matrix",),
        ),
        rollback=restore(target, packages, *names),
    )
