from kdoctor.facts import SmokeCase
from kdoctor.model import Outcome
from kdoctor_checks.smoke._judging import Comparison
from kdoctor_checks.smoke._trained import trained


@trained("smoke.one-device", replicated=False)
def one_device(compare: Comparison, case: SmokeCase) -> Outcome:
    """OneDeviceStrategy matches training without a strategy.

    Why: OneDeviceStrategy is how a distributed job is tested on one device. If fit or a custom loop differs from
    training without a strategy, the fault is in the strategy itself and not in the exchange between devices.
    Remedy: install compatible versions of TensorFlow and Keras.
    Source: https://www.tensorflow.org/api_docs/python/tf/distribute/OneDeviceStrategy
    """
    return compare.judge(case)
