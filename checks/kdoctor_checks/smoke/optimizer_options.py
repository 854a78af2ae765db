from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome, Severity
from kdoctor_checks.smoke._judging import Comparison
from kdoctor_checks.smoke._optimizers import judge_optimizer
from kdoctor_checks.smoke._trained import trained


@trained("smoke.optimizer-options", severity=Severity.WARNING)
def optimizer_options(compare: Comparison, case: SmokeCase) -> Outcome:
    """Weight decay, moving averages, learning-rate schedules and loss scales act as on one device.

    Why: weight decay and averages change the weights in addition to the gradient, and a schedule counts steps. Done
    once for each replica instead of once for each step, they train another model without an error. This is a warning
    because only jobs that use the option are affected.
    Remedy: leave out the option, or train with another release of Keras.
    Source: https://keras.io/api/optimizers/
    """
    return judge_optimizer(compare, case)
