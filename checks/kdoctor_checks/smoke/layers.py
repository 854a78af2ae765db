from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor_checks.smoke._judging import Comparison, Problem, unknown
from kdoctor_checks.smoke._trained import trained


@trained("smoke.layers")
def layers(compare: Comparison, case: SmokeCase) -> Outcome:
    """Common layers and frozen layers train as on one device.

    Why: LayerNormalization, embeddings, masks of recurrent layers, and attention use other operations than a dense
    model, and the gradient of an embedding has rows for the tokens of the batch only. A model that freezes and
    unfreezes layers is compiled again, which replaces the optimizer of all replicas.
    Remedy: look for patched layers, or install Keras 3.10 or later.
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    frozen, unfrozen = case.measures.get("frozen_moved"), case.measures.get("unfrozen_moved")
    if case.name == "frozen" and (frozen is None or unfrozen is None):
        return unknown(case, "how far the frozen layer moved was not measured")
    if frozen:
        problem = Problem(f"a frozen layer moved by {frozen:.2g}", "a frozen layer is trained")
        return compare.wrong(case, problem)
    if unfrozen == 0:
        return compare.wrong(case, Problem("an unfrozen layer did not move", "an unfrozen layer is not trained"))
    return compare.judge(case)
