from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor_checks.smoke._judging import Comparison
from kdoctor_checks.smoke._trained import trained
from kdoctor_checks.smoke._values import judge_trained


@trained("smoke.callbacks")
def callbacks(compare: Comparison, case: SmokeCase) -> Outcome:
    """Callbacks decide as on one device.

    Why: LearningRateScheduler and ReduceLROnPlateau change the optimizer on every replica. EarlyStopping and
    ModelCheckpoint choose an epoch by a loss of all replicas. If one of them decides differently, the job ends with
    other weights than on one device, without an error.
    Remedy: look for a custom callback or metric, or install Keras 3.10 or later.
    Source: https://keras.io/api/callbacks/
    """
    return judge_trained(compare, case)
