from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome, Remedy, Severity
from kdoctor.text.lists import counted
from kdoctor_backends.scenarios import CASES
from kdoctor_checks.smoke._cases import describe_end
from kdoctor_checks.smoke._judging import Comparison, brief_end, did_not_finish, evidence, finding, unknown
from kdoctor_checks.smoke._trained import trained

_FIT = ("uneven-tail", "uneven-batch", "drop-remainder")
_INFERENCE = ("evaluate", "predict", "validation", "padded")
_ALTERNATIVES = ("drop-remainder", "padded")
_FIT_REMEDY = Remedy.change_code(
    "Batch with drop_remainder=True or pad the data, and make the batch size a multiple of "
    "len(keras.distribution.list_devices())."
)
_INFERENCE_REMEDY = Remedy.change_code(
    "Pad evaluation data to full batches with sample_weight=0, use weighted_metrics, and cut the predictions. "
    "Save the model before it evaluates.",
    look=("kdoctor explain --reproduce jax-evaluate",),
)


@trained(
    "smoke.data-parallel-batches",
    cases=CASES["smoke.data-parallel-batches"],
    severity=Severity.WARNING,
    requires=(),
    finished=False,
)
def data_parallel_batches(compare: Comparison, case: SmokeCase) -> Outcome:
    """DataParallel on JAX trains, evaluates and predicts on batches that do not divide evenly.

    Why: JAX splits an array into equal shares. Keras 3.12 to 3.15.1 pass every batch on unchanged, so a final batch
    that does not divide stops the job at the end of its first epoch. The validation after an epoch stops it too. In
    evaluate and predict the model also loses its weights, so a job that catches the error cannot save it. This is a
    warning because jobs whose batches divide are not affected. The cases drop-remainder and padded run the
    alternatives.
    Remedy: batch with drop_remainder=True in fit; in evaluate and predict, pad with examples of weight zero.
    Source: https://docs.jax.dev/en/latest/sharded-computation.html
    Source: https://github.com/keras-team/keras/issues/21167
    Failure modes: jax_indivisible_batch
    """
    if case.outcome != "trained":
        return did_not_finish(compare.run, case) if case.name in _ALTERNATIVES else _indivisible(case)
    return compare.judge(case) if case.name in _FIT else _compared(case, compare.tolerance)


def _indivisible(case: SmokeCase) -> Outcome:
    batch = f"batch of {case.global_batch}" if case.name == "uneven-batch" else f"final batch of {case.final_batch}"
    lost = "; the model has lost its weights" if case.measures.get("weights left") == 0 else ""
    observed = f"{describe_end(case)} ({batch} over {counted(case.replicas, 'device')}){lost}"
    remedy = _INFERENCE_REMEDY if case.name in _INFERENCE else _FIT_REMEDY
    expected = "it runs as on one device" if case.name in _INFERENCE else "it trains"
    return finding(case, observed, expected, remedy, brief=brief_end(case))


def _compared(case: SmokeCase, tolerance: float) -> Outcome:
    difference = case.measures.get("difference")
    if difference is None:
        return unknown(case, "its results were not compared with one device")
    observed = f"results differ from one device's by up to {difference:.2g}"
    if difference <= tolerance:
        return evidence(case, observed)
    return finding(case, observed, "the results of one device", _INFERENCE_REMEDY, brief="results differ")
