"""Whether Model.fit works in several processes."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Evidence, Outcome, Severity
from kdoctor_checks.smoke._cases import name_of
from kdoctor_checks.smoke._strategies import LOSS_TOLERANCE, each_case, in_short, same_losses, unsupported


@check(
    "smoke.multi-worker-fit",
    severity=Severity.WARNING,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.multi-worker",
)
def multi_worker_fit(run: SmokeRun, *, tolerance: float = 1e-4) -> Iterator[Outcome]:
    """Model.fit trains under MultiWorkerMirroredStrategy as on one device.

    Why: Keras 3 on TensorFlow does not support it (3.15.1 raises a ValueError about a PerReplica value), and a job
    that was written for Keras 2 learns that only once all of its machines are up. A job that does not span processes
    is not concerned: hence a warning.
    Remedy: set TF_USE_LEGACY_KERAS=1 with tf_keras installed, write the training loop by hand (smoke.multi-worker
    tries one), or train Keras 3 on JAX with keras.distribution.
    Sources:
        https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras
        https://keras.io/guides/distribution/
    """

    def judge(case: SmokeCase) -> Outcome:
        is_equal = case.weight_deviation is not None and case.weight_deviation <= tolerance
        is_compared = case.outcome == "trained" and len(case.losses) == len(case.reference_losses) > 0
        if is_compared and is_equal and same_losses(case, LOSS_TOLERANCE):
            return Evidence(subject=name_of(case), observed=in_short(run, case))
        return unsupported(
            run,
            case,
            "MultiWorkerMirroredStrategy",
            "Use tf_keras (pip install tf-keras; export TF_USE_LEGACY_KERAS=1), a custom training loop, or Keras 3 on "
            "JAX (keras.distribution.DataParallel).",
        )

    yield from each_case(run, ("fit",), judge, spread=False)
