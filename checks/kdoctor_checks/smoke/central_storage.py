from kdoctor.facts import SmokeCase
from kdoctor.model import Evidence, Outcome, Severity
from kdoctor_checks.smoke._judging import Comparison, fit_unsupported
from kdoctor_checks.smoke._trained import trained

_REMEDY = "Use MirroredStrategy, or a custom training loop."


@trained("smoke.central-storage", severity=Severity.WARNING, mirrored=False, finished=False)
def central_storage(compare: Comparison, case: SmokeCase) -> Outcome:
    """CentralStorageStrategy matches one device, with fit and a custom loop.

    Why: the strategy is experimental, and Keras 3 supports it partly. Keras 3.15.1 computes the correct weights, but
    fit reports incorrect losses, and a model with BatchNormalization raises a ValueError. This is a warning because
    only jobs that use the strategy are affected.
    Remedy: use MirroredStrategy, or a custom training loop.
    Source: https://www.tensorflow.org/api_docs/python/tf/distribute/experimental/CentralStorageStrategy
    Failure modes: keras3_central_storage_loss
    """
    outcome = compare.judge(case)
    if isinstance(outcome, Evidence) or case.name != "fit":
        return outcome
    return fit_unsupported(compare.run, case, "CentralStorageStrategy", _REMEDY)
