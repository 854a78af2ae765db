from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor_checks.smoke._judging import Comparison
from kdoctor_checks.smoke._trained import trained


@trained("smoke.state")
def state(compare: Comparison, case: SmokeCase) -> Outcome:
    """Optimizers, metrics and callbacks keep the same state as on one device.

    Why: moments and momentum are kept per variable on each replica, a metric adds up over all replicas, and a callback
    runs once per global step. The loss falls even if an update is lost or counted twice.
    Remedy: look for a replaced optimizer or callback, or install Keras 3.10 or later.
    Source: https://keras.io/guides/distributed_training_with_tensorflow/
    """
    return compare.count_problem(case) or compare.judge(case)
