from kdoctor.facts import SmokeCase
from kdoctor.model import Evidence, Outcome
from kdoctor.text.lists import counted
from kdoctor_backends.scenarios import CASES
from kdoctor_checks.smoke._judging import Comparison, evidence, finding, unknown
from kdoctor_checks.smoke._trained import trained


@trained("smoke.model-parallel", cases=CASES["smoke.model-parallel"], requires=(), mirrored=False)
def model_parallel(compare: Comparison, case: SmokeCase) -> Outcome:
    """ModelParallel on JAX shards the model and matches one device.

    Why: a model is sharded because it does not fit into the memory of one device. If a layout is not applied, every
    device holds the whole model, and the job runs out of memory or wastes it. If shards are combined incorrectly, it
    trains something else. The optimizer's state is the larger part and must be sharded too. Skipped if JAX is not
    installed.
    Remedy: check variable.value.sharding of every variable, and the paths that the layout map should match.
    Source: https://keras.io/guides/distribution/
    """
    problem = _sharding_problem(case)
    if problem:
        return problem
    outcome = compare.judge(case)
    if not isinstance(outcome, Evidence):
        return outcome
    share = case.measures.get("largest share")
    largest = f"{share:.0%} of the weights' bytes on the fullest device; " if share is not None else ""
    return evidence(case, f"sharded, {largest}{outcome.observed}")


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
