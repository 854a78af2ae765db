from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._cases import describe_end
from kdoctor_checks.smoke._judging import TOLERANCE, Comparison, brief_end, finding, judge_cases

_REMEDY = (
    "Batch with drop_remainder=True or pad the data, and make the batch size a multiple of "
    "len(keras.distribution.list_devices())."
)


@check(
    "smoke.data-parallel-batches",
    severity=Severity.WARNING,
    scenario="smoke.data-parallel-batches",
    explained_by=NO_GPU,
)
def data_parallel_batches(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """DataParallel on JAX trains on batches that do not divide evenly.

    Why: JAX splits an array into equal shares. Keras 3.12 to 3.15.1 pass every batch on unchanged, so a final batch
    that does not divide stops the job at the end of its first epoch. This is a warning because jobs whose batches
    divide, or that drop the remainder, are not affected.
    Remedy: batch with drop_remainder=True or pad the data, and use a batch size that the number of devices divides.
    Source: https://docs.jax.dev/en/latest/sharded-computation.html
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)

    def judge(case: SmokeCase) -> Outcome:
        if case.outcome == "trained":
            return compare.judge(case)
        batch = f"final batch of {case.final_batch}" if case.name == "uneven-tail" else f"batch of {case.global_batch}"
        observed = f"{describe_end(case)} ({batch} over {counted(case.replicas, 'device')})"
        return finding(case, observed, "it trains", _REMEDY, brief=brief_end(case))

    yield from judge_cases(run, ("uneven-tail", "uneven-batch"), judge, trained=False)
