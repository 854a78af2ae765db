from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Outcome, Remedy
from kdoctor.text.lists import counted, some
from kdoctor_checks._causes import of_losses
from kdoctor_checks.smoke._cases import format_losses
from kdoctor_checks.smoke._frameworks import framework_and_version, this_keras
from kdoctor_checks.smoke._judging import (
    Comparison,
    evidence,
    finding,
    not_replicated,
    starves,
    unknown,
    weights_differ,
)
from kdoctor_checks.smoke._trained import trained


@trained("smoke.uneven-final-batch", replicated=False)
def uneven_final_batch(compare: Comparison, case: SmokeCase) -> Outcome:
    """Uneven final batches keep weights finite, and dropping them matches one device.

    Why: few datasets divide evenly. An uneven final batch that feeds every replica slightly biases its step, because
    each replica's mean counts the same. That is expected, but the weights must stay finite. With
    ``drop_remainder=True`` no such batch remains, so the weights must match one device within ``tolerance``.
    Remedy: install compatible versions of TensorFlow and Keras (3.10 or later).
    Sources:
        https://www.tensorflow.org/api_docs/python/tf/distribute/Strategy#experimental_distribute_dataset
        https://www.tensorflow.org/tutorials/distribute/input
    """
    return not_replicated(compare.run, case) or _judge(compare.run, case, compare)


def _judge(run: SmokeRun, case: SmokeCase, compare: Comparison) -> Outcome:
    batch = f"final batch of {case.final_batch} over {counted(case.replicas, 'replica')}"
    losses = f"losses {format_losses(case.losses)}"
    if case.weights is None or not case.losses:
        return unknown(case, "its weights or its losses were not read")
    if case.weights.nonfinite or None in case.losses:
        nonfinite = f"NaN or infinity in {some(case.weights.nonfinite)}; " if case.weights.nonfinite else ""
        remedy = Remedy.reinstall(
            f"Do not train on several replicas with {this_keras(run)} and {framework_and_version(run)}: "
            "install compatible versions."
        )
        observed, brief = f"{nonfinite}{losses} ({batch})", "weights or losses are not finite"
        return finding(case, observed, "finite weights and losses", remedy, brief=brief, explained_by=of_losses(run))
    if case.weight_deviation is None:
        return unknown(case, "its weights were not compared with one device")
    if case.name == "guarded" and case.weight_deviation > compare.tolerance:
        return compare.wrong(case, weights_differ(case.weight_deviation, compare.tolerance))
    whole, size = case.global_batch, case.final_batch
    fits = size == whole if case.name == "guarded" else size and size != whole and not starves(size, case.replicas or 1)
    if size is None or whole is None or not fits:
        return unknown(case, f"{batch} of {whole}, which is not what the case is for")
    return evidence(case, f"{batch}; {losses}; weights finite and within {case.weight_deviation:.2g} of one device")
