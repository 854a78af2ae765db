from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor_checks.smoke._judging import Comparison
from kdoctor_checks.smoke._trained import trained
from kdoctor_checks.smoke._values import judge_trained


@trained("smoke.losses")
def losses(compare: Comparison, case: SmokeCase) -> Outcome:
    """Weighted and regularized losses train as on one device.

    Why: weights of examples, classes and outputs scale each replica's part of the loss, and a replica whose weights are
    all zero must not count. Regularizers are added once, not once per replica. The loss falls even if one of these is
    ignored.
    Remedy: look for a patched loss, or install Keras 3.10 or later.
    Source: https://keras.io/api/models/model_training_apis/
    """
    return judge_trained(compare, case)
