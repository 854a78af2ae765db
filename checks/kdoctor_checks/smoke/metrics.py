from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor_checks.smoke._judging import Comparison
from kdoctor_checks.smoke._trained import trained
from kdoctor_checks.smoke._values import judge_reported, judge_trained


@trained("smoke.metrics")
def metrics(compare: Comparison, case: SmokeCase) -> Outcome:
    """Metrics that fit reports on several replicas are correct.

    Why: each replica counts its own examples, and the counts are added up. A metric that is summed or averaged
    incorrectly misleads everybody who chooses a model by it, and callbacks that watch it. NumPy computes accuracy, AUC,
    precision, recall, RMSE, top-k accuracy and F1 from the same examples; train_on_batch is compared with one device.
    Remedy: install Keras 3.10 or later, and look for a patched or custom metric.
    Source: https://keras.io/api/metrics/
    """
    return judge_trained(compare, case) if case.name == "on-batch" else judge_reported(compare, case)
