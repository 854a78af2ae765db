from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import finding
from kdoctor_checks.smoke._trained import trained

_REMEDY = "Remove jit_compile when training under a strategy, and create one strategy for the whole program."


@trained(
    "smoke.misuse",
    refusals=(
        "AssertionError",
        "InvalidArgumentError",
        "NotImplementedError",
        "RuntimeError",
        "UnimplementedError",
        "ValueError",
    ),
)
def misuse(case: SmokeCase) -> Outcome:
    """XLA on several replicas and mixing two strategies raise an error.

    Why: jit_compile=True cannot compile the exchange between replicas, and a model belongs to the strategy that it was
    created in. Both must raise an error; if neither does, the job trains something else.
    Remedy: remove jit_compile under a strategy (auto disables it), and create one strategy for the whole program.
    Source: https://www.tensorflow.org/guide/distributed_training
    Failure modes: jit_compile_true_multi
    """
    weights = case.weights
    observed = "trains without an error"
    if weights:
        observed += f": {weights.mirrored} of {counted(weights.variables, 'variable')} are mirrored"
    return finding(case, observed, "an error", _REMEDY, brief="trains without an error")
