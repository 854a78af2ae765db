from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Action, Finding, Outcome, Remedy, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import NO_ROLLBACK, TENSORFLOW, TOLERANCE, Comparison, finding, judge_cases, unknown

_REMEDY = Remedy(
    summary="In jobs that clip, clip in train_step after adding up the gradients of the replicas.",
    action=Action.CHANGE_CODE,
    look=("kdoctor explain --reproduce clipping",),
)
_ALTERNATIVE = "clip-after-reduction"


@check("smoke.clipping", severity=Severity.WARNING, requires=TENSORFLOW, explained_by=NO_GPU, scenario="smoke.features")
def clipping(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """Clipped gradients on all replicas match one device.

    Why: clipnorm, global_clipnorm and clipvalue limit the gradient of the global batch. Keras 3 limits the gradient of
    each replica instead and adds them up afterwards, without an error. This is a warning because only jobs that clip
    are affected; job.clipping is an error for such a job. The case clip-after-reduction trains the alternative.
    Remedy: clip in a custom train_step after an all_reduce of the gradients, or train with tf_keras.
    Source: https://keras.io/api/optimizers/
    Failure modes: keras3_clips_each_replica
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)

    def judge(case: SmokeCase) -> Outcome:
        way, longest = case.measures.get("reference_way"), case.measures.get("longest_way")
        if way is None or longest is None:
            return unknown(case, "how far clipped steps moved the weights was not measured")
        # A step of SGD with learning rate r moves a variable by at most r times the limit of its gradient's norm.
        if way > longest * (1 + tolerance):
            observed = f"a variable moved by {way:.3g} on one device, clipped steps allow {longest:.3g}"
            return finding(case, observed, "every step is clipped", _REMEDY, brief="gradients are not clipped")
        outcome = compare.judge(case)
        if not isinstance(outcome, Finding) or case.name == _ALTERNATIVE:
            return outcome
        return replace(
            outcome,
            remedy=_REMEDY,
            rollback=NO_ROLLBACK,
            brief="clips the gradient of each replica, not their sum",
            explained_by=(*outcome.explained_by, "job.clipping"),
        )

    yield from judge_cases(run, ("clipnorm", "global-clipnorm", "clipvalue", _ALTERNATIVE), judge)
