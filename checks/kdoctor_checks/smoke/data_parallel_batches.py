"""Whether batches that do not divide are trained on by Keras on JAX."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks.smoke._cases import TOLERANCE, how_it_ended
from kdoctor_checks.smoke._strategies import change_code, each_case, equals_one_device

_UNEVEN_TAIL = "uneven-tail"


@check("smoke.data-parallel-batches", severity=Severity.WARNING, scenario="smoke.data-parallel-batches")
def data_parallel_batches(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """A batch that does not divide over the devices of DataParallel trains, also if it is the last of an epoch.

    Why: JAX cuts an array into equal shares. Keras 3.12 to 3.15.1 hand it every batch as it comes, so that a final
    batch that does not divide ends the job with an error after its whole first epoch. A job whose batches divide, or
    that drops the remainder, is not concerned: hence a warning.
    Remedy: batch with drop_remainder=True, or pad the data to a multiple of the batch, and choose a batch that the
    number of devices divides.
    Source: https://docs.jax.dev/en/latest/sharded-computation.html
    """

    def judge(case: SmokeCase) -> Outcome:
        if case.outcome == "trained":
            return equals_one_device(run, case, target, packages, tolerance=tolerance)
        batch = f"final batch of {case.final_batch}" if case.name == _UNEVEN_TAIL else f"batch of {case.global_batch}"
        advice = (
            "Batch with drop_remainder=True or pad the data, and make the batch a multiple of "
            "len(keras.distribution.list_devices())."
        )
        return change_code(case, f"{batch} over {case.replicas} devices: {how_it_ended(case)}", "it trains", advice)

    yield from each_case(run, (_UNEVEN_TAIL, "uneven-batch"), judge)
