from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Packages, SmokeCase, SmokeRun, Target, Unavailable
from kdoctor.model import Evidence, Outcome, Severity
from kdoctor.text.lists import counted
from kdoctor_checks._causes import NO_GPU
from kdoctor_checks.smoke._judging import TOLERANCE, Comparison, evidence, finding, judge_cases, unknown


@check("smoke.model-parallel", severity=Severity.ERROR, scenario="smoke.model-parallel", explained_by=NO_GPU)
def model_parallel(
    run: SmokeRun, target: Target | Unavailable, packages: Packages | Unavailable, *, tolerance: float = TOLERANCE
) -> Iterator[Outcome]:
    """ModelParallel on JAX shards the model and matches one device.

    Why: a model is sharded because it does not fit into the memory of one device. If a layout is not applied, every
    device holds the whole model, and the job runs out of memory or wastes it. If shards are combined incorrectly, it
    trains something else. The optimizer's state is the larger part and must be sharded too. Skipped if JAX is not
    installed.
    Remedy: check variable.value.sharding of every variable, and the paths that the layout map should match.
    Source: https://keras.io/guides/distribution/
    """
    compare = Comparison(run=run, target=target, packages=packages, tolerance=tolerance, mirrored=False)

    def judge(case: SmokeCase) -> Outcome:
        problem = _sharding_problem(case)
        if problem:
            return problem
        outcome = compare.judge(case)
        if not isinstance(outcome, Evidence):
            return outcome
        share = case.measures.get("largest share")
        largest = f"{share:.0%} of the weights' bytes on the fullest device; " if share is not None else ""
        return evidence(case, f"sharded, {largest}{outcome.observed}")

    yield from judge_cases(run, ("model-axis", "data-and-model"), judge)


def _sharding_problem(case: SmokeCase) -> Outcome | None:
    """What is wrong with the placement of the variables, or why it is not known."""
    wanted, weights = case.measures.get("to be sharded"), case.weights
    optimizer = case.measures.get("optimizer sharded")
    if not wanted or weights is None or optimizer is None:
        return unknown(case, "the placement of its variables is not known")
    incomplete = weights.variables - weights.sharded - weights.mirrored
    if weights.sharded < wanted:
        observed = f"{weights.sharded} of {wanted:.0f} variables that the layout shards are sharded"
    elif optimizer < wanted:
        observed = f"the optimizer's state of {optimizer:.0f} of {wanted:.0f} sharded variables is sharded"
    elif incomplete > 0:
        variables = counted(weights.variables, "variable")
        observed = f"{incomplete} of {variables} are neither whole nor sharded on every device"
    else:
        return None
    remedy = "Compare variable.path with the keys of the layout map, and print variable.value.sharding."
    devices = counted(case.replicas, "device")
    expected = f"each of {devices} holds one shard of what the layout shards, and all other variables"
    return finding(case, observed, expected, remedy, brief="variables are not placed as the layout says")
