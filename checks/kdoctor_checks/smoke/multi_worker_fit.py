from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import (
    LOSS_TOLERANCE,
    TENSORFLOW,
    TOLERANCE,
    evidence,
    fit_unsupported,
    judge_cases,
    losses_match,
    summarize,
)
from kdoctor_checks.smoke._trained import cases_of

_REMEDY = (
    "Use tf_keras (pip install tf-keras; export TF_USE_LEGACY_KERAS=1), a custom training loop, or Keras 3 on JAX "
    "(keras.distribution.DataParallel)."
)


@check(
    "smoke.multi-worker-fit",
    severity=Severity.WARNING,
    requires=TENSORFLOW,
    explained_by=NO_GPU,
    scenario="smoke.multi-worker",
)
def multi_worker_fit(run: SmokeRun, *, tolerance: float = TOLERANCE) -> Iterator[Outcome]:
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

    def judge(case: SmokeCase) -> Outcome:
        weights_match = case.weight_deviation is not None and case.weight_deviation <= tolerance
        match = weights_match and losses_match(case.losses, case.reference_losses, LOSS_TOLERANCE)
        if case.outcome == "trained" and case.losses and match:
            return evidence(case, summarize(run, case))
        return fit_unsupported(run, case, "MultiWorkerMirroredStrategy", _REMEDY)

    yield from judge_cases(run, cases_of("smoke.multi-worker-fit"), judge, replicated=False, trained=False)
