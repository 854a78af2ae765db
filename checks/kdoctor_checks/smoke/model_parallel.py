"""Whether Keras on JAX really cuts a model up, and trains it rightly."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Evidence, Outcome, Severity, Unjudged
from kdoctor_checks.smoke._cases import TOLERANCE, name_of
from kdoctor_checks.smoke._strategies import change_code, each_case, equals_one_device

_ASKED = "to be sharded"


@check("smoke.model-parallel", severity=Severity.ERROR, scenario="smoke.model-parallel")
def model_parallel(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """keras.distribution.ModelParallel on JAX holds a share of the model on each device, and trains as one device does.

    Why: a model is cut up because it does not fit into one device's memory. Where a layout is not followed, every
    device holds the whole model and the job ends out of memory, or trains and merely wastes it; where shares are put
    together wrongly, it trains something else. What the optimizer keeps for each weight is the larger part and must be
    cut up, too. Not judged where JAX is not installed.
    Remedy: look at variable.value.sharding of every variable, and at the paths that the layout map is to match.
    Source: https://keras.io/guides/distribution/
    """

    def judge(case: SmokeCase) -> Outcome:
        if case.outcome != "trained":
            return equals_one_device(run, case, target, packages, tolerance=tolerance)
        problem = _not_cut_up(case)
        if problem:
            return problem
        outcome = equals_one_device(run, case, target, packages, tolerance=tolerance, mirrored=False)
        if not isinstance(outcome, Evidence):
            return outcome
        share = case.measures.get("largest share")
        fullest = f"{share:.0%} of the weights' bytes on the fullest device; " if share is not None else ""
        return Evidence(subject=name_of(case), observed=f"cut up, {fullest}{outcome.observed}")

    yield from each_case(run, ("model-axis", "data-and-model"), judge)


def _not_cut_up(case: SmokeCase) -> Outcome | None:
    """What is wrong with where the variables live, or why it is not known; None if they are where they should be."""
    asked, weights, slots = case.measures.get(_ASKED), case.weights, case.measures.get("optimizer sharded")
    if not asked or weights is None or slots is None:
        return Unjudged(subject=name_of(case), reason="it is not known where the variables live")
    elsewhere = weights.variables - weights.sharded - weights.mirrored
    if weights.sharded < asked:
        observed = f"{weights.sharded} of {asked:.0f} variables that the layout cuts are held in shares"
    elif slots < asked:
        observed = f"what the optimizer keeps for {slots:.0f} of {asked:.0f} cut variables is held in shares"
    elif elsewhere > 0:
        observed = f"{elsewhere} of {weights.variables} variables are neither whole nor in shares on every device"
    else:
        return None
    advice = "Compare variable.path with the keys of the layout map, and print variable.value.sharding."
    expected = f"each of {case.replicas} devices holds a share of what the layout cuts, and the whole of the rest"
    return change_code(case, observed, expected, advice)
