from collections.abc import Iterator

from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted, some
from kdoctor_checks._versions import first_short
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_checks.smoke._trained import trained

_DIFFERENCE_OF = "difference of "
_EXPENSIVE = 1.5
"""Relative time from which the cost of an operation is reported separately."""


@trained("smoke.determinism", severity=Severity.WARNING, tolerance=0.0, replicated=False)
def determinism(case: SmokeCase, tolerance: float) -> Outcome | Iterator[Outcome]:
    """Two trainings with the same seed produce the same weights.

    Why: a run that cannot be repeated cannot be debugged. With a seed alone, some GPU kernels add numbers in a varying
    order. enable_op_determinism makes TensorFlow choose deterministic kernels or raise, and costs time. The evidence
    lists the operations that differ when repeated on the same numbers, and what determinism costs for each.
    Remedy: call keras.utils.set_random_seed, and tf.config.experimental.enable_op_determinism if that is not enough.
    Source: https://www.tensorflow.org/api_docs/python/tf/config/experimental/enable_op_determinism
    """
    return _judge_operations(case, tolerance) if case.name == "operations" else _judge_weights(case, tolerance)


def _judge_weights(case: SmokeCase, tolerance: float) -> Outcome:
    if "difference" not in case.measures:
        return unknown(case, "the two trainings were not compared")
    difference = case.measures["difference"]
    if difference is None or difference > tolerance:
        size = "by NaN or infinity" if difference is None else f"by up to {difference:.2g}"
        remedy = "Call tf.config.experimental.enable_op_determinism() after setting the seed, or accept the difference."
        if case.name == "op-determinism":
            remedy = "Look for random numbers, threads or files of the job that Keras's seed does not control."
        observed = f"weights of two trainings differ {size}{_location(case)}"
        return finding(case, observed, "the same weights", remedy, brief="two trainings give different weights")
    step = f", step {case.step_s:.3g} s" if case.step_s is not None else ""
    cost = case.measures.get("cost")
    ratio = f", {cost:.2g} times the time without enable_op_determinism" if cost is not None else ""
    return evidence(case, f"weights differ by {difference:g}{step}{ratio}")


def _location(case: SmokeCase) -> str:
    """The variables that differ, by descending difference, and the first step that differs."""
    differences = {
        name.removeprefix(_DIFFERENCE_OF): float("inf") if value is None else value
        for name, value in case.measures.items()
        if name.startswith(_DIFFERENCE_OF)
    }
    largest = sorted(differences, key=lambda name: -differences[name])
    step = case.measures.get("first_step_apart")
    variables = f", in {some(largest)}" if largest else ""
    return variables + (f"; the loss differs from step {step:.0f} on" if step is not None else "")


def _judge_operations(case: SmokeCase, tolerance: float) -> Iterator[Outcome]:
    """Report each operation that differs or is expensive, and the others together."""
    names = [name.removesuffix(": difference") for name in case.measures if name.endswith(": difference")]
    if not names:
        yield unknown(case, "no operation was run")
    reproducible = []
    for name in names:
        difference = case.measures.get(f"{name}: difference")
        deterministic = case.measures.get(f"{name}: difference insisting", 0.0)
        is_equal = difference is not None and difference <= tolerance
        if deterministic is None or deterministic > tolerance:
            remedy = "Avoid this operation in a training that must be reproducible, and report it to TensorFlow."
            observed = f"{name} differs by {_format(deterministic)} when repeated with enable_op_determinism"
            brief = first_short(f"{name} is not deterministic", "an operation is not deterministic")
            yield finding(case, observed, "the same numbers", remedy, brief=brief)
        elif not is_equal or _is_expensive(case, name):
            repeated = "equal when repeated" if is_equal else f"differs by {_format(difference)} when repeated"
            yield evidence(name, f"{repeated}; with enable_op_determinism {_describe_cost(case, name)}")
        else:
            reproducible.append(name)
    if reproducible:
        costs = [cost for name in reproducible if (cost := case.measures.get(f"{name}: cost")) is not None]
        ratio = f"; with enable_op_determinism at most {max(costs):.2g} times the time" if costs else ""
        observed = f"equal when repeated: {', '.join(reproducible)}{ratio}"
        yield evidence(counted(len(reproducible), "operation"), observed)


def _is_expensive(case: SmokeCase, name: str) -> bool:
    cost = case.measures.get(f"{name}: cost")
    return f"{name}: refused" in case.measures or (cost is not None and cost >= _EXPENSIVE)


def _describe_cost(case: SmokeCase, name: str) -> str:
    if f"{name}: refused" in case.measures:
        return "TensorFlow refuses it"
    cost = case.measures.get(f"{name}: cost")
    return "equal, cost not measured" if cost is None else f"equal, {cost:.2g} times the time"


def _format(difference: float | None) -> str:
    return "NaN or infinity" if difference is None else f"{difference:.2g}"
