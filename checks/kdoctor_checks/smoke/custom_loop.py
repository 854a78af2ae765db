from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor_checks.smoke._judging import Comparison
from kdoctor_checks.smoke._trained import trained


@trained("smoke.custom-loop")
def custom_loop(compare: Comparison, case: SmokeCase) -> Outcome:
    """A custom training loop on all replicas matches one device.

    Why: a custom loop is the workaround wherever fit does not support a strategy. It relies on the optimizer to add up
    the gradients of the replicas (strategy.run, compute_average_loss over the global batch).
    Remedy: install a Keras that combines gradients correctly across replicas (3.10 or later, or tf_keras).
    Source: https://www.tensorflow.org/tutorials/distribute/custom_training
    """
    return compare.judge(case)
