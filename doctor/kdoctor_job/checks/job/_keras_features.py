"""Judges a feature that the job uses by what its Keras does with it over several replicas."""

from collections.abc import Sequence

from kdoctor.facts import SmokeRun
from kdoctor.matrix.keras import HARMLESS, KnownFeature
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import Outcome, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._versions import parse_version
from kdoctor_checks.smoke._judging import evidence, unknown
from kdoctor_job.checks.job._options import Judged, judge_measured
from kdoctor_job.checks.job._user_model import replicas_of
from kdoctor_job.facts import JobModel
from kdoctor_job.own_model import OWN_MODEL

_MEASURED = "MirroredStrategy"


def judge_feature(
    run: SmokeRun,
    model: JobModel,
    matrix: VersionMatrix,
    features: Sequence[str],
    *,
    option: str,
    used: str,
    judged: Judged,
) -> Outcome:
    """The outcome for features that the model uses.

    Args:
        run: the run of the job.
        model: the job's model.
        matrix: what was measured.
        features: what the model uses, by the names in the matrix; a defect of any of them counts.
        option: its name in the facts about the training, whose result on this machine counts more than the matrix;
            empty if it is not an option.
        used: how the model uses the features.
        judged: what the check says.
    """
    subject, replicas = judged.subject, replicas_of(run)
    if replicas is None:
        return unknown(subject, "the number of replicas is not known")
    here = judge_measured(run, option, used, judged)
    if option and here is not None:
        return here
    found = _known(run, model, matrix, features, subject)
    if isinstance(found, Unjudged):
        return found
    observed = f"{used} on {counted(replicas, 'replica')}: {found.observed} ({found.basis})"
    if found.result in HARMLESS:
        return evidence(subject, observed)
    return judged.finding(observed)


def _known(
    run: SmokeRun, model: JobModel, matrix: VersionMatrix, features: Sequence[str], subject: str
) -> KnownFeature | Unjudged:
    """What the model's Keras does with the features, or why that is not known."""
    package, _, version = (model.keras or "").partition(" ")
    case = run.case(OWN_MODEL.removeprefix("smoke."))
    strategy = case.strategy if case else None
    if strategy != _MEASURED:
        return unknown(subject, f"measured under {_MEASURED} only, not under {strategy or 'an unknown strategy'}")
    if parse_version(version) is None:
        return unknown(subject, "the version of the model's Keras is not known")
    known = [matrix.keras_feature(name, package, version) for name in features]
    defects = [item for item in known if item.result is not None and item.result not in HARMLESS]
    if defects:
        return defects[0]
    unmeasured = [item for item in known if item.result is None]
    return unknown(subject, unmeasured[0].basis) if unmeasured else known[0]
