from dataclasses import replace

from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Evidence, Outcome
from kdoctor_backends.scenarios import CASES
from kdoctor_checks.smoke._cases import describe_end
from kdoctor_checks.smoke._judging import Comparison, did_not_finish, evidence, finding, unknown, weights_problem
from kdoctor_checks.smoke._trained import trained
from kdoctor_checks.smoke._values import judge_trained

_COMPARED = ("ddp", "adam", "nesterov", "clipping", "keras-adam", "keras-clipping", "accumulation", "layers")
_METRICS = ("top_2", "f1")
_REFUSAL = "RuntimeError"
_LATE_REMEDY = "Build the model, such as with keras.Input, before DistributedDataParallel takes it."
_SEED_REMEDY = "Add the rank to the seed of random layers, and use another release of Keras and torch."
_LOST_REMEDY = "Set a deadline for the job, such as the timeout of init_process_group."


@trained(
    "smoke.torch-data-parallel", cases=CASES["smoke.torch-data-parallel"], requires=(), explained_by=(), finished=False
)
def torch_data_parallel(compare: Comparison, case: SmokeCase) -> Outcome:
    """Keras on torch in DistributedDataParallel matches one device.

    Why: the guide of Keras for several GPUs with torch wraps the model in DistributedDataParallel, which averages the
    gradients of the ranks. With full batches the result must be that of one device, also with other optimizers of torch
    and Keras, with gradients that are clipped after backward or added up over two steps, and with attention. A metric
    of Keras counts the examples of its rank; if the counts are added up with all_reduce, it must be that of one device.
    Ranks with the same seed draw the same Dropout masks; with the rank in the seed they must not. A final batch that
    does not divide and BatchNormalization differ by design: each rank's mean counts the same, and each keeps its own
    moving statistics.
    A model without variables must be refused, and a rank that dies must end the others. Skipped if torch is not
    installed.
    Remedy: install compatible versions of Keras and torch.
    Source: https://keras.io/guides/distributed_training_with_torch/
    """
    if case.name == "model-built-late":
        return _refused(compare.run, case)
    if case.name == "lost-rank":
        return _lost(case)
    if case.outcome != "trained":
        return did_not_finish(compare.run, case)
    if case.name == "dropout":
        return _masks(case)
    if case.name == "metrics-of-classes":
        return _metrics(compare, case)
    return compare.judge(case) if case.name in _COMPARED else _finite(compare, case)


def _finite(compare: Comparison, case: SmokeCase) -> Outcome:
    """The ranks hold the same finite weights; the difference from one device is evidence."""
    if case.weights is None or case.weight_deviation is None:
        return unknown(case, "its weights were not compared with one device")
    problem = weights_problem(case.weights)
    if problem:
        return compare.wrong(case, problem)
    apart = case.measures.get("statistics differ")
    statistics = f"; moving statistics of the ranks differ by up to {apart:.2g}" if apart is not None else ""
    observed = f"equal on all ranks; weights differ from one device by up to {case.weight_deviation:.2g}{statistics}"
    return evidence(case, observed)


def _metrics(compare: Comparison, case: SmokeCase) -> Outcome:
    """Metrics of all ranks match one device; those of the first rank alone are evidence."""
    outcome = judge_trained(compare, case)
    if not isinstance(outcome, Evidence):
        return outcome
    parts = [(name, case.measures.get(f"metric {name}"), case.measures.get(f"part {name}")) for name in _METRICS]
    if any(value is None or part is None for _, value, part in parts):
        return unknown(case, "its metrics were not compared with one device")
    shown = ", ".join(f"{name} {value:.4g} (the first rank alone: {part:.4g})" for name, value, part in parts)
    return replace(outcome, observed=f"{outcome.observed}; {shown}")


def _masks(case: SmokeCase) -> Outcome:
    masks, equal, of_ranks = (case.measures.get(name) for name in ("masks", "equal_masks", "equal_masks_of_ranks"))
    if not masks or equal is None or of_ranks is None:
        return unknown(case, "its masks were not compared")
    observed = f"equal masks with the rank in the seed in {of_ranks:.0f} of {masks:.0f} steps"
    if of_ranks:
        brief = "ranks draw the same numbers"
        return finding(case, observed, "a different mask on each rank", _SEED_REMEDY, brief=brief)
    return evidence(case, f"{observed}, with the same seed in {equal:.0f}")


def _refused(run: SmokeRun, case: SmokeCase) -> Outcome:
    if case.outcome == "raised" and any(worker.error_type == _REFUSAL for worker in case.workers):
        return evidence(case, f"refused: {describe_end(case)}")
    if case.outcome != "trained":
        return did_not_finish(run, case)
    return finding(case, "trains without an error", "it is refused", _LATE_REMEDY, brief="trains without an error")


def _lost(case: SmokeCase) -> Outcome:
    ended, patience = case.measures.get("others_s"), case.measures.get("patience_s")
    if ended is not None:
        first = case.workers[0] if case.workers else None
        error = f" with {first.error_type}" if first and first.error_type else ""
        return evidence(case, f"the others ended after {ended:.1f} s{error}")
    if patience is None or not case.workers:
        return unknown(case, "the loss of a rank was not observed")
    observed = f"the others still waited after {patience:.0f} s"
    return finding(case, observed, "they end with an error", _LOST_REMEDY, brief="others wait for a lost rank")
