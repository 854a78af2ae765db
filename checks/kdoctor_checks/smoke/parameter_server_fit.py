from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Outcome, Severity
from kdoctor_checks.smoke._cases import format_losses
from kdoctor_checks.smoke._judging import evidence, fit_unsupported, loss_falls
from kdoctor_checks.smoke._trained import trained

_REMEDY = (
    "Use tf_keras (pip install tf-keras; export TF_USE_LEGACY_KERAS=1), or ClusterCoordinator.schedule in a custom "
    "training loop."
)


@trained(
    "smoke.parameter-server-fit",
    severity=Severity.WARNING,
    scenario="smoke.parameter-server",
    replicated=False,
    finished=False,
)
def parameter_server_fit(run: SmokeRun, case: SmokeCase) -> Outcome:
    """Model.fit trains under ParameterServerStrategy.

    Why: Keras 3 on TensorFlow does not support it (3.15.1 asks for ClusterCoordinator.create_per_worker_dataset,
    which fit does not call); tf_keras does. This is a warning because only jobs with parameter servers are affected.
    Remedy: set TF_USE_LEGACY_KERAS=1 with tf_keras installed, or write a custom training loop with
    ClusterCoordinator.schedule (tested by smoke.parameter-server).
    Source: https://www.tensorflow.org/tutorials/distribute/parameter_server_training
    Failure modes: keras3_parameter_server_fit
    """
    finite, weights = case.measures.get("finite"), case.measures.get("weights")
    if case.outcome == "trained" and loss_falls(case) and weights and finite == weights:
        return evidence(case, f"losses {format_losses(case.losses)}")
    return fit_unsupported(run, case, "ParameterServerStrategy", _REMEDY)
