"""Judges a feature that the job uses by what its Keras does with it over several replicas."""

from __future__ import annotations

from kdoctor.facts import JobModel, SmokeRun
from kdoctor.matrix.keras import KerasFeature
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import NotApplicable, Outcome, Remedy, Unjudged
from kdoctor.text.lists import counted, some
from kdoctor_checks._versions import parse_version
from kdoctor_checks.job._options import judge_measured
from kdoctor_checks.job._user_model import SCENARIO, replicas_of
from kdoctor_checks.smoke._judging import evidence, finding, unknown

_MEASURED = "MirroredStrategy"


def judge_feature(
    run: SmokeRun,
    model: JobModel,
    matrix: VersionMatrix,
    feature: str,
    *,
    option: str,
    subject: str,
    used: str,
    expected: str,
    remedy: Remedy | str,
    brief: str,
) -> Outcome:
    """The outcome for a feature that the model uses.

    Args:
        run: the run of the job.
        model: the job's model.
        matrix: what was measured.
        feature: the feature's name in the matrix.
        option: its name in the facts about the training, whose result on this machine counts more than the matrix;
            empty if it is not an option.
        subject: the subject of the outcome.
        used: how the model uses the feature.
        expected: what a problem should be instead.
        remedy: the fix of a problem.
        brief: the short form of a problem.
    """
    replicas = replicas_of(run)
    if replicas is None:
        return unknown(subject, "the number of replicas is not known")
    if replicas == 1:
        return NotApplicable(reason="the job has only one replica")
    here = judge_measured(run, option, used, subject=subject, expected=expected, remedy=remedy, brief=brief)
    if option and here is not None:
        return here
    found = _measured(run, model, matrix, feature, subject)
    if isinstance(found, Unjudged):
        return found
    observed = f"{used} on {counted(replicas, 'replica')}: {found.observed} ({_basis(found, model)})"
    if found.result == "right":
        return evidence(subject, observed)
    return finding(subject, observed, expected, remedy, brief=brief)


def _measured(
    run: SmokeRun, model: JobModel, matrix: VersionMatrix, feature: str, subject: str
) -> KerasFeature | Unjudged:
    """What the model's Keras does with the feature, or why that is not known."""
    package, _, version = (model.keras or "").partition(" ")
    case = run.case(SCENARIO.removeprefix("smoke."))
    strategy = case.strategy if case else None
    if strategy != _MEASURED:
        return unknown(subject, f"measured under {_MEASURED} only, not under {strategy or 'an unknown strategy'}")
    if parse_version(version) is None:
        return unknown(subject, "the version of the model's Keras is not known")
    found = matrix.keras_feature(feature, package, version)
    if found is None:
        known = [release for row in matrix.keras_features for release in row.releases if row.package == package]
        measured = f"measured: {some(list(dict.fromkeys(known)))}" if known else "no release was measured"
        return unknown(subject, f"not measured with {package} {version} ({measured})")
    return found


def _basis(found: KerasFeature, model: JobModel) -> str:
    """The model's Keras, and on what its behaviour is based."""
    keras = model.keras or ""
    if keras.partition(" ")[2] in found.releases:
        return f"measured with {keras}"
    return f"{keras} was not measured, but releases before and after it were: {', '.join(found.releases)}"
