from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, judge_cases
from kdoctor_checks.smoke._values import with_remedy

_REMEDY = "In jobs with a loss for each token, give the mask as sample_weight instead of mask_zero=True."


@check(
    "smoke.masked-loss", severity=Severity.WARNING, requires=TENSORFLOW, explained_by=NO_GPU, scenario="smoke.losses"
)
def masked_loss(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """A loss without the masked tokens trains as on one device.

    Why: Embedding(mask_zero=True) and Masking leave masked tokens out of the mean of the loss. Each replica divides by
    the number of tokens that it has, so the tokens of a replica with short sequences count more than on one device. The
    same holds for reduction="mean_with_sample_weight". Keras 2 does it too. This is a warning because the difference
    is small if all replicas have about as many tokens. The case token-weights trains the alternative.
    Remedy: give the mask as a sample weight for each token, which does not change the divisor.
    Source: https://keras.io/guides/understanding_masking_and_padding/
    Failure modes: keras_masked_loss
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)

    def judge(case: SmokeCase) -> Outcome:
        outcome = compare.judge(case)
        return (
            with_remedy(outcome, _REMEDY, "divides by each replica's tokens") if case.name == "masked-loss" else outcome
        )

    yield from judge_cases(run, ("masked-loss", "token-weights"), judge)
