from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.matrix.keras import HARMLESS
from kdoctor.matrix.model import VersionMatrix
from kdoctor.model import NotApplicable, Outcome, Remedy, Severity
from kdoctor.text.lists import counted
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import job_check, job_of
from kdoctor_job.facts import JobModel

_FEATURE = "multi-worker/fit"
_STRATEGY = "MultiWorkerMirroredStrategy"
_REMEDY = Remedy.change_code(
    "Train with tf_keras (pip install tf-keras; export TF_USE_LEGACY_KERAS=1), or with a loop that calls strategy.run.",
    look=("kdoctor explain --reproduce multi-worker-fit",),
)


@job_check("job.several-workers", Severity.ERROR, "job.model-and-data")
def several_workers(run: SmokeRun, case: SmokeCase, model: JobModel, matrix: VersionMatrix) -> Outcome:
    """The fit of the job works on several workers.

    Why: on several workers of a MultiWorkerMirroredStrategy, fit of Keras 3 raises a ValueError about a PerReplica
    value, once all machines are running. One worker trains, and kdoctor examines one, so the version matrix judges the
    others: it has what was measured with each release. TF_CONFIG, or the resolver that the strategy gets, says how many
    there are.
    Remedy: train with tf_keras, or in a loop with strategy.run.
    Source: https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras
    Failure modes: keras3_multi_worker_fit
    """
    job = job_of(run)
    if _STRATEGY not in (job.strategy, case.strategy):
        return NotApplicable(reason=f"the job makes no {_STRATEGY}")
    if job.workers == 1:
        return evidence("fit", "one worker")
    package, _, version = (model.keras or "").partition(" ")
    known = matrix.keras_feature(_FEATURE, package, version)
    if known.result is None:
        return unknown("fit", known.basis)
    on = counted(job.workers, "worker") if job.workers else "several workers"
    if known.result in HARMLESS:
        return evidence("fit", f"{known.observed} on {on} ({known.basis})")
    if job.workers is None:
        return unknown("fit", f"no TF_CONFIG names the workers, and on several ones fit of {model.keras} fails")
    observed = f"{model.keras} on {on}: {known.observed} ({known.basis})"
    return finding("fit", observed, "it trains on all workers", _REMEDY, brief=f"fails on {on} with {model.keras}")
