"""Whether two trainings from one seed are one training."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor.text.lists import some
from kdoctor_checks.smoke._cases import did_not_finish, name_of
from kdoctor_checks.smoke._strategies import change_code, each_case

_OF = "difference of "
_DEAR = 1.5
"""Times as long from which an operation's cost is told by name."""


@check(
    "smoke.determinism",
    severity=Severity.WARNING,
    requires=["versions.tensorflow-installed"],
    scenario="smoke.determinism",
)
def determinism(run: SmokeRun, *, tolerance: float = 0.0) -> Iterator[Outcome]:
    """Two trainings from one seed end with the same weights.

    Why: a run that cannot be repeated cannot be debugged. With a seed alone some GPU kernels add up in an order of
    their own; enable_op_determinism makes TensorFlow choose others or refuse, and costs time. Which operations differ
    when they are run again on the same numbers, and what each costs then, is in the evidence.
    Remedy: call keras.utils.set_random_seed, and tf.config.experimental.enable_op_determinism where that is not
    enough.
    Source: https://www.tensorflow.org/api_docs/python/tf/config/experimental/enable_op_determinism
    """

    def judge(case: SmokeCase) -> Outcome | Iterator[Outcome]:
        if case.outcome != "trained":
            return did_not_finish(run, case)
        if case.name == "operations":
            return _operations(case, tolerance)
        difference = case.measures.get("difference")
        if "difference" not in case.measures:
            return Unjudged(subject=name_of(case), reason="the two trainings were not compared")
        if difference is None or difference > tolerance:
            how_far = "not finite" if difference is None else f"up to {difference:.2g}"
            advice = "Call tf.config.experimental.enable_op_determinism() after the seed, or accept the difference."
            if case.name == "op-determinism":
                advice = "Look for random numbers, threads or files of the job's own that no seed of Keras reaches."
            return change_code(
                case, f"weights of two trainings differ: {how_far}{_where(case)}", "the same weights", advice
            )
        step = f", step {case.step_s:.3g} s" if case.step_s is not None else ""
        cost = case.measures.get("cost")
        times = f", {cost:.2g} times as long as without enable_op_determinism" if cost is not None else ""
        return Evidence(subject=name_of(case), observed=f"weights differ by {difference:g}{step}{times}")

    yield from each_case(run, ("seed", "op-determinism", "operations"), judge, spread=False)


def _where(case: SmokeCase) -> str:
    """The variables that differ, the farthest first, and the first step that does."""
    gaps = {
        name.removeprefix(_OF): float("inf") if gap is None else gap
        for name, gap in case.measures.items()
        if name.startswith(_OF)
    }
    farthest = sorted(gaps, key=lambda name: -gaps[name])
    words = f", in {some(tuple(farthest))}" if farthest else ""
    step = case.measures.get("first_step_apart")
    return words + (f"; the loss differs from step {step:.0f} on" if step is not None else "")


def _operations(case: SmokeCase, tolerance: float) -> Iterator[Outcome]:
    """What is to be said of the operations: which differ, which still do, what each costs."""
    names = [name.removesuffix(": difference") for name in case.measures if name.endswith(": difference")]
    if not names:
        yield Unjudged(subject=name_of(case), reason="no operation was run")
    quiet = []
    for name in names:
        apart = case.measures.get(f"{name}: difference")
        still = case.measures.get(f"{name}: difference insisting", 0.0)
        if still is None or still > tolerance:
            advice = "Keep this operation out of a training that must be repeated, and report it to TensorFlow."
            observed = f"{name}: differs by {_gap(still)} when run again, with enable_op_determinism"
            yield change_code(case, observed, "the same numbers", advice)
        elif apart is None or apart > tolerance or _is_dear(case, name):
            yield Evidence(subject=name, observed=f"{_agreement(apart, tolerance)}; insisted on, {_price(case, name)}")
        else:
            quiet.append(name)
    if quiet:
        costs = [cost for name in quiet if (cost := case.measures.get(f"{name}: cost")) is not None]
        times = f", insisted on {min(costs):.2g} to {max(costs):.2g} times as long" if costs else ""
        subject = f"{len(quiet)} operation{'s' if len(quiet) > 1 else ''}"
        yield Evidence(subject=subject, observed=f"equal when run again{times}: {', '.join(quiet)}")


def _is_dear(case: SmokeCase, name: str) -> bool:
    cost = case.measures.get(f"{name}: cost")
    return f"{name}: refused" in case.measures or (cost is not None and cost >= _DEAR)


def _agreement(apart: float | None, tolerance: float) -> str:
    return "equal when run again" if apart is not None and apart <= tolerance else f"differs by {_gap(apart)}"


def _price(case: SmokeCase, name: str) -> str:
    if f"{name}: refused" in case.measures:
        return "TensorFlow refuses it"
    cost = case.measures.get(f"{name}: cost")
    return "equal, at a cost that was not measured" if cost is None else f"equal, {cost:.2g} times as long"


def _gap(value: float | None) -> str:
    return "NaN or infinity" if value is None else f"{value:.2g}"
