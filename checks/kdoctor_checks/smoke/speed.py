"""How fast the machine trains; evidence alone."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.smoke._cases import did_not_finish, name_of
from kdoctor_checks.smoke._strategies import each_case

_RATE = re.compile(r"per_s (\d+)")


@check("smoke.speed", severity=Severity.INFO, requires=["versions.tensorflow-installed"], scenario="smoke.speed")
def speed(run: SmokeRun) -> Iterator[Outcome]:
    """The speed over one replica and over all was measured.

    Why: a later run that is slower on the same machine points to a link, a GPU or an input pipeline. Here it is
    evidence and no verdict: how fast is fast enough, the job knows. Over CPU devices the replicas share the cores, so
    the efficiency says nothing about GPUs.
    Remedy: compare with an earlier run's report on the same machine.
    Source: https://www.tensorflow.org/guide/gpu_performance_analysis
    """

    def judge(case: SmokeCase) -> Iterator[Outcome]:
        if case.outcome != "trained":
            yield did_not_finish(run, case)
            return
        rates = {
            int(found[1]): value for name, value in case.measures.items() if value and (found := _RATE.match(name))
        }
        if not rates:
            yield Unjudged(subject=name_of(case), reason="no speed was measured")
            return
        for replicas, rate in sorted(rates.items()):
            yield Evidence(subject=_replicas(replicas, run), observed=_throughput(case, rates, replicas, rate))
        exchange = case.measures.get("all_reduce_gbs")
        if exchange is not None:
            yield Evidence(
                subject="all-reduce", observed=f"{exchange:.3g} GB/s sent from each of {max(rates)} replicas"
            )
        pipeline = case.measures.get("input_per_s")
        if pipeline is not None:
            yield Evidence(subject="input pipeline", observed=_input(pipeline, rates[max(rates)]))

    yield from each_case(run, ("throughput",), judge, spread=False)


def _replicas(number: int, run: SmokeRun) -> str:
    return f"{number} replica{'' if number == 1 else 's'} ({run.devices_kind})"


def _throughput(case: SmokeCase, rates: dict[int, float], replicas: int, rate: float) -> str:
    """Examples per second, the step's time, and how well it scales from one replica."""
    step = case.measures.get(f"step {replicas}")
    words = f"{_thousands(rate)} examples/s" + (f", {1000 * step:.3g} ms a step" if step is not None else "")
    if replicas == 1 or 1 not in rates:
        return words
    return f"{words}, scaling efficiency {rate / rates[1] / replicas:.0%}"


def _input(pipeline: float, need: float) -> str:
    """The pipeline's rate against the step's need."""
    times = pipeline / need
    share = f"{times:.0f}" if times >= 10 else f"{times:.2g}"  # noqa: PLR2004 - two digits
    bound = "input-bound: the replicas would wait for data" if times < 1 else "not input-bound"
    return f"{_thousands(pipeline)} examples/s alone, {share} times what the steps use: {bound}"


def _thousands(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"  # noqa: PLR2004 - three digits
