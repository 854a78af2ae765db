from kdoctor.defects import defect
from kdoctor.facts import SmokeRun
from kdoctor.model import Outcome, Severity
from kdoctor_checks.smoke._judging import evidence, unknown
from kdoctor_job.checks.job._options import Judged, judge_measured, used_options
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobModel

_DEFECT = defect("smoke.masked-loss")
_OPTION = "masks"


@job_check("job.masked-loss", Severity.WARNING, "job.trains", several=True)
def masked_loss(run: SmokeRun, model: JobModel) -> Outcome:
    """The loss of masked tokens is the same on several replicas.

    Why: with Embedding(mask_zero=True), Masking or a loss with ignore_class, the loss of a batch is divided by the
    number of tokens that are not masked. Each replica divides by its own number, so tokens of a replica with short
    sequences count more than on one device. Keras 2 does it too. kdoctor trains the job with and without masks in the
    loss, on the replicas and on one device. This is a warning because batches whose sequences are of similar length
    change little.
    Remedy: give the mask as a sample weight for each token.
    Source: https://keras.io/guides/understanding_masking_and_padding/
    Failure modes: keras_masked_loss
    """
    options = used_options(run, model)
    if options is None:
        return unknown(_OPTION, "the options of the model were not read")
    used = options.get(_OPTION)
    if used is None:
        return evidence(_OPTION, "no layer and no loss masks tokens")
    judged = Judged(_OPTION, "the loss of one device", _DEFECT.fix, _DEFECT.brief)
    return judge_measured(run, _OPTION, used, judged) or unknown(
        _OPTION, "the job with its masks was not compared with one device"
    )
