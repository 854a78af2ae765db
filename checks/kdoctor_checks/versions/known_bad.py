from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.packages import install, restore
from kdoctor.facts import KerasChoice, Packages, Target, TensorFlowBuild, Unavailable
from kdoctor.matrix.model import KnownBad, VersionMatrix
from kdoctor.matrix.values import specifier
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._builds import not_in_matrix, release_of, versions_there
from kdoctor_checks._versions import parse_version
from kdoctor_checks.versions._requirements import needs_of, unmet_needs

_EFFECTS = {"crash": "known to crash", "wrong-results": "known to give wrong results"}


@check("versions.known-bad", severity=Severity.ERROR, requires=["versions.tensorflow-installed"])
def known_bad(
    tensorflow: TensorFlowBuild,
    packages: Packages,
    keras: KerasChoice | Unavailable,
    target: Target,
    matrix: VersionMatrix,
) -> Iterator[Outcome]:
    """No known-bad version combination is installed.

    Why: some combinations satisfy all requirements in the metadata but still fail. TensorFlow 2.10 and 2.11, for
    example, were compiled with NumPy 1 and set no upper bound for it. With NumPy 2 they break ("A module that was
    compiled using NumPy 1.x cannot be run in NumPy 2").
    Remedy: install the versions that fix the failure.
    Sources:
        https://numpy.org/devdocs/numpy_2_0_migration_guide.html
        https://github.com/tensorflow/tensorflow/issues/98406
    Failure modes: numpy2_abi
    """
    subject = f"tensorflow {tensorflow.version or '(version unknown)'}"
    if parse_version(tensorflow.version) is None:
        yield Unjudged(subject=subject, reason="its version is not valid")
        return
    found = [row for row in matrix.known_bad_for(versions_there(tensorflow, packages)) if _judged_here(row)]
    roots = (tensorflow.distribution or "tensorflow", *((keras.package,) if isinstance(keras, KerasChoice) else ()))
    needs = needs_of(roots, packages, target)
    conflicts = {name for name in needs.by_name if unmet_needs(name, needs, packages)}
    for row in found:
        yield _finding(row, tensorflow, packages, target, _explained_by(row, conflicts))
    if release_of(tensorflow, matrix) is None:
        reason = f"{not_in_matrix(tensorflow.version or '', matrix)}, which lists what is known to fail"
        yield Unjudged(subject=subject, reason=reason, answered_by="smoke.baseline")
    elif not found:
        rows = sum(_judged_here(row) for row in matrix.known_bad)
        yield Evidence(
            subject=subject, observed=f"not in the list of known-bad combinations ({counted(rows, 'entry', 'entries')})"
        )


def _judged_here(row: KnownBad) -> bool:
    """Whether the versions of distributions alone decide. versions.keras-compatible judges Keras."""
    needs_machine = {"capability", "cudnn", "python"} & set(row.when)
    fails = row.effect in _EFFECTS
    return fails and row.job is None and not needs_machine and set(row.when) != {"keras"}


def _explained_by(row: KnownBad, conflicts: set[str]) -> tuple[str, ...]:
    """The checks that report the same version of a package."""
    keras = ("versions.keras-compatible",) if {"keras", "tf-keras"} & set(row.when) else ()
    return (*keras, *(("versions.package-conflicts",) if conflicts & set(row.when) else ()))


def _finding(
    row: KnownBad, tensorflow: TensorFlowBuild, packages: Packages, target: Target, explained_by: tuple[str, ...]
) -> Finding:
    present = {"tensorflow": tensorflow.distribution or "tensorflow"}
    names = [present.get(name, name) for name in row.when]
    wanted = row.install or tuple(f"{name}{spec}" for name, spec in row.ended_by.items())
    return Finding(
        subject=" with ".join(f"{name} {packages.version(name)}" for name in names),
        observed=row.symptom,
        brief=_EFFECTS[row.effect],
        explained_by=explained_by,
        expected="not " + " with ".join(f"{name}{specifier(spec)}" for name, spec in row.when.items()),
        remedy=Remedy.reinstall(
            f"Install {row.fix}.",
            *((install(target, packages, *wanted),) if wanted else ()),
            look=() if wanted else ("kdoctor matrix",),
        ),
        rollback=restore(target, packages, *names),
    )
