import re
from collections.abc import Iterator

from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import evidence, unknown
from kdoctor_checks.smoke._trained import trained

_RATE = re.compile(r"per_s (\d+)")


@trained("smoke.speed", severity=Severity.INFO, replicated=False)
def speed(run: SmokeRun, case: SmokeCase) -> Iterator[Outcome]:
    """Training speed was measured on one replica and on all replicas.

    Why: if a later run on the same machine is slower, a link, a GPU or the input pipeline has changed. This is
    evidence only, because how fast is fast enough depends on the job. Logical CPU devices share the cores, so their
    scaling efficiency says nothing about GPUs.
    Remedy: compare with the report of an earlier run on the same machine.
    Source: https://www.tensorflow.org/guide/gpu_performance_analysis
    """
    rates = {int(found[1]): rate for name, rate in case.measures.items() if rate and (found := _RATE.match(name))}
    if not rates:
        yield unknown(case, "no speed was measured")
        return
    for replicas, rate in sorted(rates.items()):
        yield evidence(f"{counted(replicas, 'replica')} ({run.devices_kind})", _throughput(case, rates, replicas, rate))
    all_reduce = case.measures.get("all_reduce_gbs")
    if all_reduce is not None:
        yield evidence("all-reduce", f"{all_reduce:.3g} GB/s sent from each of {counted(max(rates), 'replica')}")
    pipeline = case.measures.get("input_per_s")
    if pipeline is not None:
        yield evidence("input pipeline", _input(pipeline, rates[max(rates)]))


def _throughput(case: SmokeCase, rates: dict[int, float], replicas: int, rate: float) -> str:
    """Examples per second, time per step, and scaling efficiency."""
    step = case.measures.get(f"step {replicas}")
    observed = f"{_format(rate)} examples/s" + (f", {1000 * step:.3g} ms per step" if step is not None else "")
    if replicas == 1 or 1 not in rates:
        return observed
    return f"{observed}, scaling efficiency {rate / rates[1] / replicas:.0%}"


def _input(pipeline: float, used: float) -> str:
    """The rate of the input pipeline, compared with what the steps use."""
    ratio = pipeline / used
    times = f"{ratio:.0f}" if ratio >= 10 else f"{ratio:.2g}"  # noqa: PLR2004 - two digits
    bound = "input-bound: replicas would wait for data" if ratio < 1 else "not input-bound"
    return f"{_format(pipeline)} examples/s alone, {times} times the rate of the steps: {bound}"


def _format(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"  # noqa: PLR2004 - three digits
