from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, finding, judge_cases
from kdoctor_checks.smoke._trained import cases_of

_REMEDY = "Remove jit_compile when training under a strategy, and create one strategy for the whole program."


@check("smoke.misuse", severity=Severity.ERROR, requires=TENSORFLOW, explained_by=NO_GPU, scenario="smoke.misuse")
def misuse(
    run: SmokeRun,
    *,
    refusals: tuple[str, ...] = (
        "AssertionError",
        "InvalidArgumentError",
        "NotImplementedError",
        "RuntimeError",
        "UnimplementedError",
        "ValueError",
    ),
) -> Iterator[Outcome]:
    """XLA on several replicas and mixing two strategies raise an error.

    Why: jit_compile=True cannot compile the exchange between replicas, and a model belongs to the strategy that it was
    created in. Both must raise an error; if neither does, the job trains something else.
    Remedy: remove jit_compile under a strategy (auto disables it), and create one strategy for the whole program.
    Source: https://www.tensorflow.org/guide/distributed_training
    Failure modes: jit_compile_true_multi
    """

    def judge(case: SmokeCase) -> Outcome:
        weights = case.weights
        observed = "trains without an error"
        if weights:
            observed += f": {weights.mirrored} of {counted(weights.variables, 'variable')} are mirrored"
        return finding(case, observed, "an error", _REMEDY, brief="trains without an error")

    yield from judge_cases(run, cases_of("smoke.misuse"), judge, refusals=refusals)
