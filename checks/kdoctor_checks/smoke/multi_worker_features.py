from dataclasses import replace

from kdoctor.facts import SmokeCase
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Severity
from kdoctor_checks.smoke._clipping import judge_clipping
from kdoctor_checks.smoke._judging import NO_ROLLBACK, Comparison, unknown
from kdoctor_checks.smoke._optimizers import judge_optimizer
from kdoctor_checks.smoke._random_layers import REMEDY, judge_masks
from kdoctor_checks.smoke._trained import trained
from kdoctor_checks.smoke._values import values_problem
from kdoctor_checks.smoke._workers import judge_workers

_OPTIMIZERS = ("adam-built-late", "adam-built-in-scope", "nesterov", "amsgrad", "centered-rmsprop")
_CLIPPED = ("global-clipnorm", "clip-after-reduction")
_METRICS = {"adam-built-in-scope": {"metric mae"}, "metrics-of-classes": {"metric top_2", "metric f1"}}
_MASKS = ("dropout", "dropout-per-replica")
_CLIP = Remedy.change_code(
    "Add up the gradients of the workers with all_reduce in the step, then clip them.",
    look=("kdoctor explain --reproduce clipping",),
)
_BUILD = Remedy.change_code(
    "Call optimizer.build(model.trainable_variables) in the strategy's scope.",
    look=("kdoctor explain --reproduce optimizer-built-late",),
)
_SEED = replace(
    REMEDY,
    summary="Add replica_id_in_sync_group to the seed of the layer. With tf_keras, add the worker's index to the seed.",
)


@trained("smoke.multi-worker-features", severity=Severity.WARNING, replicated=False)
def multi_worker_features(compare: Comparison, case: SmokeCase) -> Outcome:
    """Optimizers, metrics, clipping and Dropout in a custom loop over two workers match one device.

    Why: Keras 3 clips the gradient of each worker before they are added up, and draws the same Dropout masks on all
    workers, without an error. This is a warning because only jobs that use the feature are affected. The cases
    clip-after-reduction, adam-built-in-scope and dropout-per-replica train the alternatives. Measured with Keras
    3.15.1: weights differ by 0.022 with global_clipnorm, and masks are equal in every step. tf_keras 2.21.0 clips
    correctly, but workers with the same seed draw the same masks. With one device in each worker, an optimizer that
    the first step builds is correct.
    Remedy: clip in the step after an all_reduce of the gradients, and add the replica's index to the seed of a layer.
    Source: https://www.tensorflow.org/tutorials/distribute/multi_worker_with_ctl
    Failure modes: keras3_clips_each_replica, keras3_equal_masks
    """
    if case.name in _MASKS:
        return judge_masks(compare.run, case, _SEED, ("smoke.random-layers",))
    if case.name in _CLIPPED:
        outcome, remedy = judge_clipping(compare, case, "smoke.clipping"), _CLIP
    elif case.name in _OPTIMIZERS:
        outcome, remedy = judge_optimizer(compare, case), _BUILD
    else:
        outcome, remedy = compare.judge(case), None
    outcome = judge_workers(compare, case, outcome)
    if isinstance(outcome, Finding):
        return replace(outcome, remedy=remedy) if remedy and not outcome.remedy.commands else outcome
    wrong = values_problem(case)
    if wrong:
        return replace(compare.wrong(case, wrong), rollback=NO_ROLLBACK)
    if isinstance(outcome, Evidence) and not _METRICS.get(case.name, set()) <= case.measures.keys():
        return unknown(case, "its metrics were not compared with one device")
    return outcome
