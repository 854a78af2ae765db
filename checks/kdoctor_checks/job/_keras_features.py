"""Looks up what the job's Keras does with a feature over several replicas."""

from __future__ import annotations

from kdoctor.facts import JobModel, SmokeRun
from kdoctor.matrix.keras import KerasFeature
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Unjudged
from kdoctor.text.lists import some
from kdoctor_checks._versions import parse_version
from kdoctor_checks.job._user_model import SCENARIO
from kdoctor_checks.smoke._judging import unknown

_MEASURED = "MirroredStrategy"


def measured_feature(
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


def with_basis(found: KerasFeature, model: JobModel) -> str:
    """The model's Keras, and on what its behaviour is based."""
    keras = model.keras or ""
    if keras.partition(" ")[2] in found.releases:
        return f"measured with {keras}"
    return f"{keras} was not measured, but releases before and after it were: {', '.join(found.releases)}"
