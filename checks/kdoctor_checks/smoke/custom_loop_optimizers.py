from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome, Severity
from kdoctor_checks.smoke._judging import Comparison
from kdoctor_checks.smoke._optimizers import judge_optimizer
from kdoctor_checks.smoke._trained import trained


@trained("smoke.custom-loop-optimizers", severity=Severity.WARNING)
def custom_loop_optimizers(compare: Comparison, case: SmokeCase) -> Outcome:
    """Custom loops with an optimizer that is built in the scope match fit on one device.

    Why: strategy.run calls the optimizer once on each replica, and the optimizer adds up their gradients itself. This
    is also the alternative that smoke.optimizer-built-late names. It is a warning because a job uses one optimizer;
    smoke.custom-loop, an error, uses SGD. The Nadam of tf_keras 2.21.0 ends with NaN weights here.
    Remedy: train with an optimizer that passes, or with another release of Keras.
    Source: https://www.tensorflow.org/tutorials/distribute/custom_training
    Failure modes: keras2_nadam_custom_loop
    """
    return judge_optimizer(compare, case)
