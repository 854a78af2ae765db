"""How fast the machine trains; evidence alone."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.smoke._cases import did_not_finish, name_of
from kdoctor_checks.smoke._strategies import each_case


@check("smoke.speed", severity=Severity.INFO, requires=["versions.tensorflow-installed"], scenario="smoke.speed")
def speed(run: SmokeRun) -> Iterator[Outcome]:
    """The speed over one replica and over all was measured.

    Why: a later run that is slower on the same machine points to a link, a GPU or an input pipeline. Here it is
    evidence and no verdict: how fast is fast enough, the job knows. Over CPU devices the replicas share the cores, so
    the efficiency says nothing about GPUs.
    Remedy: compare with an earlier run's report on the same machine.
    Source: https://www.tensorflow.org/guide/gpu_performance_analysis
    """

    def judge(case: SmokeCase) -> Outcome:
        if case.outcome != "trained":
            return did_not_finish(run, case)
        measured = [
            f"{words} {value:.3g}{unit}"
            for name, words, unit in (
                ("efficiency", "scaling efficiency", ""),
                ("step_s", "step", " s"),
                ("all_reduce", "all-reduce", " B/s for each replica"),
                ("input_per_s", "input alone", " examples/s"),
            )
            if (value := case.measures.get(name)) is not None
        ]
        rates = [
            f"{name.removeprefix('per_s ')} replicas {value:.3g} examples/s"
            for name, value in case.measures.items()
            if name.startswith("per_s ") and value is not None
        ]
        if not rates:
            return Unjudged(subject=name_of(case), reason="no speed was measured")
        return Evidence(subject=name_of(case), observed="; ".join([*rates, *measured]) + f" ({run.devices_kind})")

    yield from each_case(run, ("throughput",), judge, spread=False)
