from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeRun
from kdoctor.model import NotApplicable, Outcome, Severity, Unjudged
from kdoctor.text.lists import counted, some
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import SCENARIO, model_of

_REMEDY = "Create these layers inside with strategy.scope(), like the model itself."


@check(
    "job.variables-mirrored",
    severity=Severity.ERROR,
    requires=["job.model-in-scope"],
    scenario=SCENARIO,
    explained_by=NO_GPU,
)
def variables_mirrored(run: SmokeRun) -> Iterator[Outcome]:
    """Every trainable variable is mirrored on every replica.

    Why: a part created before the scope, such as a backbone at the top of a module, keeps its variables on one device.
    Remedy: create every layer of the model inside the scope.
    Source: https://www.tensorflow.org/guide/distributed_training
    """
    model = model_of(run)
    if isinstance(model, Unjudged):
        yield model
        return
    subject, count = (
        f"model {model.name}",
        f"{model.mirrored} of {counted(model.trainable, 'trainable variable')} mirrored",
    )
    if not model.built:
        yield NotApplicable(reason="the model is not built; fit creates its variables in the model's scope")
    elif model.trainable == 0:
        yield unknown(subject, "it has no trainable variables")
    elif model.mirrored == model.trainable:
        yield evidence(subject, f"{count} on every replica")
    else:
        observed = f"{count} on every replica, not {some(model.not_mirrored)}"
        brief = "some variables are on one device only"
        yield finding(subject, observed, "all of them on every replica", _REMEDY, brief=brief)
