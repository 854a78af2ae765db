"""Judges a feature that the job uses by what its Keras does with it over several replicas."""

from __future__ import annotations

from kdoctor.facts import JobModel, SmokeRun
from kdoctor.matrix.keras import HARMLESS, KnownFeature
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import NotApplicable, Outcome, Remedy, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._versions import parse_version
from kdoctor_checks.job._user_model import SCENARIO, replicas_of
from kdoctor_checks.smoke._judging import evidence, finding, unknown

_MEASURED = "MirroredStrategy"
_CASES = {"steps-per-execution": ("steps-per-execution",), "random-layers": ("dropout",)}
"""The cases of smoke scenarios that show a feature. Clipping has one for each of its options."""


def judge_feature(
    run: SmokeRun,
    model: JobModel,
    matrix: VersionMatrix,
    feature: str,
    *,
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
    found = _measured(run, model, matrix, feature, subject)
    if isinstance(found, Unjudged):
        return found
    observed = f"{used} on {counted(replicas, 'replica')}: {found.observed} ({_basis(found, model)})"
    if found.result == "right":
        return evidence(subject, observed)
    return finding(subject, observed, expected, remedy, brief=brief)


def _measured(
    run: SmokeRun, model: JobModel, matrix: VersionMatrix, feature: str, subject: str
) -> KnownFeature | Unjudged:
    """What the model's Keras does with the feature, or why that is not known. A defect of one of its cases counts."""
    package, _, version = (model.keras or "").partition(" ")
    case = run.case(SCENARIO.removeprefix("smoke."))
    strategy = case.strategy if case else None
    if strategy != _MEASURED:
        return unknown(subject, f"measured under {_MEASURED} only, not under {strategy or 'an unknown strategy'}")
    if parse_version(version) is None:
        return unknown(subject, "the version of the model's Keras is not known")
    options = [option.partition("=")[0].replace("_", "-") for option in model.clipping or ()]
    cases = options if feature == "clipping" else _CASES[feature]
    names = [name for name in matrix.features if name.partition("/")[2] in cases]
    known = [matrix.keras_feature(name, package, version) for name in names]
    defects = [item for item in known if item.result is not None and item.result not in HARMLESS]
    unmeasured = [item.basis for item in known if item.result is None]
    if defects:
        return defects[0]
    if unmeasured or not known:
        return unknown(subject, unmeasured[0] if unmeasured else f"the version matrix does not list {', '.join(cases)}")
    return known[0]


def _basis(found: KnownFeature, model: JobModel) -> str:
    """On what the behaviour of the model's Keras is based."""
    del model
    return found.basis
