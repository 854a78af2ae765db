from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Outcome, Severity
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TENSORFLOW, TOLERANCE, Comparison, Problem, judge_cases, unknown


@check("smoke.layers", severity=Severity.ERROR, requires=TENSORFLOW, explained_by=NO_GPU, scenario="smoke.layers")
def layers(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """Common layers and frozen layers train as on one device.

    Why: LayerNormalization, embeddings, masks of recurrent layers, and attention use other operations than a dense
    model, and the gradient of an embedding has rows for the tokens of the batch only. A model that freezes and
    unfreezes layers is compiled again, which replaces the optimizer of all replicas.
    Remedy: look for patched layers, or install Keras 3.10 or later.
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance)

    def judge(case: SmokeCase) -> Outcome:
        frozen, unfrozen = case.measures.get("frozen_moved"), case.measures.get("unfrozen_moved")
        if case.name == "frozen" and (frozen is None or unfrozen is None):
            return unknown(case, "how far the frozen layer moved was not measured")
        if frozen:
            problem = Problem(f"a frozen layer moved by {frozen:.2g}", "a frozen layer is trained")
            return compare.wrong(case, problem)
        if unfrozen == 0:
            return compare.wrong(case, Problem("an unfrozen layer did not move", "an unfrozen layer is not trained"))
        return compare.judge(case)

    yield from judge_cases(run, ("normalization", "embedding", "recurrent", "attention", "frozen"), judge)
