from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.shell import set_variable
from kdoctor.facts import KerasChoice, TensorFlowBuild
from kdoctor.matrix.keras import BASELINE
from kdoctor.matrix.model import VersionMatrix
from kdoctor.matrix.verdict import add_row
from kdoctor.model import Assumptions, Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_checks._builds import not_in_matrix, release_of
from kdoctor_checks._versions import parse_version


@check("versions.in-matrix", severity=Severity.WARNING, requires=["versions.tensorflow-installed"])
def in_matrix(
    tensorflow: TensorFlowBuild, keras: KerasChoice, matrix: VersionMatrix, assumptions: Assumptions
) -> Iterator[Outcome]:
    """The version matrix has the installed TensorFlow and Keras.

    Why: what a release requires and which of its features train incorrectly is known for measured releases. Of other
    releases, kdoctor knows what its trainings show on this machine. Without trainings the run is inconclusive.
    Remedy: let the smoke trainings judge it, and upgrade kdoctor when a version with a newer matrix is out.
    Source: https://www.tensorflow.org/install/source#gpu
    """
    subject = f"tensorflow {tensorflow.version or '(version unknown)'}"
    if parse_version(tensorflow.version) is None:
        yield Unjudged(subject=subject, reason="its version is not valid")
    elif release_of(tensorflow, matrix):
        yield Evidence(subject=subject, observed=f"in the version matrix of {matrix.updated}")
    else:
        yield _finding(
            subject,
            not_in_matrix(tensorflow.version or "", matrix),
            Remedy.configure(
                "Let the trainings judge it. To know its requirements, read its wheel or upgrade kdoctor:",
                add_row(tensorflow.version or ""),
                set_variable("KDOCTOR_MATRIX", "own.yaml"),
            ),
            Rollback.to("use the shipped matrix alone", set_variable("KDOCTOR_MATRIX", None)),
        )
    if parse_version(keras.version) is not None:
        measured = matrix.keras_feature(BASELINE, keras.package.replace("-", "_"), keras.version or "")
        subject = f"{keras.package} {keras.version}"
        if measured.result is None:
            where = "" if assumptions.expects_gpus else " --replicas 2"
            remedy = Remedy.configure("Train every scenario to measure it.", f"kdoctor smoke --tier standard{where}")
            yield _finding(
                subject,
                measured.basis.removeprefix(f"{subject} "),
                remedy,
                Rollback.nothing("not needed (the trainings change nothing)"),
            )
        else:
            yield Evidence(subject=subject, observed=measured.basis)


def _finding(subject: str, observed: str, remedy: Remedy, rollback: Rollback) -> Finding:
    return Finding(
        subject=subject,
        observed=observed,
        brief=observed.partition(";")[0].replace("was not measured", "kdoctor has not measured how it trains"),
        expected="a release in the version matrix",
        remedy=remedy,
        rollback=rollback,
    )
