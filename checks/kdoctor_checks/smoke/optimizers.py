from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome, Severity
from kdoctor_checks.smoke._judging import Comparison
from kdoctor_checks.smoke._optimizers import judge_optimizer
from kdoctor_checks.smoke._trained import trained


@trained("smoke.optimizers", severity=Severity.WARNING)
def optimizers(compare: Comparison, case: SmokeCase) -> Outcome:
    """Every optimizer of Keras trains as on one device.

    Why: an optimizer whose variables differ between the replicas, or that takes the gradient of one replica for that of
    the batch, trains another model without an error. Its variables are compared, too, because an error shows there
    first. Adam and most others divide by the size of the gradient, so they hide a summed gradient; smoke.baseline uses
    plain SGD. This is a warning because a job uses one optimizer; Adam and momentum are also in smoke.state, an error.
    Remedy: train with an optimizer that passes, or with another release of Keras.
    Source: https://keras.io/api/optimizers/
    """
    return judge_optimizer(compare, case)
