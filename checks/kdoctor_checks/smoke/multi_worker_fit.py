from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Outcome, Severity
from kdoctor_checks.smoke._judging import LOSS_TOLERANCE, evidence, fit_unsupported, losses_match, summarize
from kdoctor_checks.smoke._trained import trained

_REMEDY = (
    "Use tf_keras (pip install tf-keras; export TF_USE_LEGACY_KERAS=1), a custom training loop, or Keras 3 on JAX "
    "(keras.distribution.DataParallel)."
)


@trained(
    "smoke.multi-worker-fit", severity=Severity.WARNING, scenario="smoke.multi-worker", replicated=False, finished=False
)
def multi_worker_fit(run: SmokeRun, case: SmokeCase, tolerance: float) -> Outcome:
    """Model.fit under MultiWorkerMirroredStrategy matches one device.

    Why: Keras 3 on TensorFlow does not support it (3.15.1 raises a ValueError about a PerReplica value). A job written
    for Keras 2 then fails only once all of its machines are running. This is a warning because jobs in a single process
    are not affected.
    Remedy: set TF_USE_LEGACY_KERAS=1 with tf_keras installed, write a custom training loop (tested by
    smoke.multi-worker), or train Keras 3 on JAX with keras.distribution.
    Sources:
        https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras
        https://keras.io/guides/distribution/
    Failure modes: keras3_multi_worker_fit
    """
    weights_match = case.weight_deviation is not None and case.weight_deviation <= tolerance
    match = weights_match and losses_match(case.losses, case.reference_losses, LOSS_TOLERANCE)
    if case.outcome == "trained" and case.losses and match:
        return evidence(case, summarize(run, case))
    return fit_unsupported(run, case, "MultiWorkerMirroredStrategy", _REMEDY)
