from collections.abc import Iterator
from pathlib import PurePath

from kdoctor.model import Evidence, Outcome, Severity
from kdoctor.text.lists import counted, some
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import headline, job_check, no_room, remedy_for
from kdoctor_job.restore_facts import JobRestore

_SAVED = "the saved model"
_NO_FOLDER = (
    "they were not run, because they would save where the job does: give the function of --fit-arguments a parameter "
    "named folder, and save there"
)
_BEFORE = "the job goes on from a complete save"
_TO_FILES = (
    "Keep the save before: BackupAndRestore(double_checkpoint=True), if this Keras has it, or a name for each save, "
    "such as {epoch:03d}.keras, and load the newest that is complete."
)
_TO_COPY = (
    "Before the job starts again, copy each .bkp file of BackupAndRestore over the file without .bkp, or delete the "
    "folder if there are none. Keras reads them only if the weights are cut off, and not training_metadata.json."
)
_ALIKE = "what was saved, and a training that goes on as if it had not been killed"
_TO_FIT = "Run fit with these callbacks to reproduce the error."
_TO_STATE = (
    "Restore with a tf.train.Checkpoint of model and optimizer, or BackupAndRestore, and compare the variables after "
    "loading."
)
_TO_VARIABLES = "Keep what the training needs in variables of the model: plain attributes are not saved."
_TO_BEGIN = (
    "Add keras.callbacks.BackupAndRestore, or let the function of --model take the folder and load the newest save. "
    "Build the optimizer before load_weights: model.optimizer.build(model.trainable_variables)."
)
_OTHER_CALLBACK = "Save with ModelCheckpoint, and load the file before fit."


@job_check("job.restores", Severity.ERROR)
def restores(restore: JobRestore) -> Iterator[Outcome]:
    """The job can be saved, killed and restored, and trains on as if it had not been interrupted.

    Why: a job of two weeks will be interrupted. Whether its checkpoint can be loaded, and has all that the training
    needs, shows on the day when it is too late. With --restore DIR, kdoctor trains the job for two epochs of a few
    steps, with its own callbacks if they can save in another folder, kills it between two saves and in a save, and goes
    on in fresh processes, on all replicas and on one device. Every variable of the model and of the optimizer must have
    the same bits, and the second epoch must end where the run that was not killed ends.
    Remedy: register own classes, and save what the training needs in variables.
    Source: https://keras.io/guides/serialization_and_saving/
    """
    if restore.save_problem:
        remedy = remedy_for(restore.save_problem, _TO_FIT, restore.folder)
        yield finding("saving", restore.save_problem, "the job is saved", remedy, brief=headline(restore.save_problem))
        return
    if restore.own_left_out:
        yield unknown("the job's callbacks", _NO_FOLDER)
    if restore.no_room:
        yield no_room(restore.folder)
    if restore.unsaved:
        yield unknown("the job's callbacks", "they saved nothing in two epochs: use more --steps, or save more often")
        return
    if restore.position_unread and not restore.begins_again:
        yield unknown("the next epoch", restore.position_unread)
    yield _loaded(restore)
    yield _alone(restore)
    yield _half(restore)
    if restore.backup_problem or restore.backup_step is not None:
        yield _backup(restore)


def _loaded(restore: JobRestore) -> Outcome:
    if restore.load_problem:
        return _not_loaded(restore, restore.load_problem, "all replicas")
    if restore.lost is None or not restore.variables:
        return unknown(_SAVED, "loading it had no result")
    if not restore.resumed_step:
        lost = f": {some(restore.lost)} are not as saved" if restore.lost else ""
        observed = f"the optimizer begins again with its first step{lost}"
        return finding(_SAVED, observed, _ALIKE, _TO_BEGIN, brief="the optimizer begins again")
    if restore.lost:
        observed = f"not as saved after loading: {some(restore.lost)}"
        return finding(_SAVED, observed, _ALIKE, _TO_STATE, brief="loading loses variables")
    if restore.apart:
        observed = f"after another epoch, other values than without the kill: {some(restore.apart)}"
        remedy, brief = _TO_VARIABLES, "it trains on differently"
        if restore.forgotten:
            remedy, brief = (
                f"Save {some(restore.forgotten)}, and set it in on_train_begin.",
                "the callbacks forget numbers",
            )
        return finding(_SAVED, observed, _ALIKE, remedy, brief=brief)
    variables = counted(restore.variables, "variable")
    then = "has other examples" if restore.apart is None else "ends the same"
    observed = f"{variables} the same after loading, and the next epoch {then}"
    return Evidence(subject=_SAVED, observed=observed, brief="it comes back after a kill")


def _not_loaded(restore: JobRestore, problem: str, where: str) -> Outcome:
    otherwise = "Register own classes with keras.saving.register_keras_serializable, and give them get_config."
    if any(kind.endswith(".h5") and not kind.endswith(".weights.h5") for kind in restore.kinds):
        otherwise = "Save whole models as .keras, not as .h5."
    return _raised(f"loading on {where}", problem, "it loads and trains on", otherwise)


def _raised(subject: str, problem: str, expected: str, otherwise: str) -> Outcome:
    return finding(subject, problem, expected, remedy_for(problem, otherwise), brief=headline(problem))


def _alone(restore: JobRestore) -> Outcome:
    subject = "one device"
    if restore.alone_problem:
        # What cannot be loaded on all replicas is one problem.
        same = restore.alone_problem == restore.load_problem
        return unknown(subject, "as on all replicas") if same else _not_loaded(restore, restore.alone_problem, subject)
    if restore.lost_alone is None:
        return unknown(subject, "loading the save there had no result")
    if restore.lost_alone and restore.lost_alone == restore.lost:
        return unknown(subject, "as on all replicas")
    if restore.lost_alone:
        observed = f"not as saved after loading on one device: {some(restore.lost_alone)}"
        return finding(subject, observed, _ALIKE, _TO_STATE, brief="loading on one device loses variables")
    return evidence(subject, "it loads the save with the same variables, and trains on")


def _half(restore: JobRestore) -> Outcome:
    subject = "half-written save"
    begun = "the job began again with its first step" if restore.half == "gone" else None
    problem = restore.half_problem or begun
    killed = f"killed while it wrote {restore.half_file}: " if restore.half_file else ""
    if restore.load_problem or restore.lost or not restore.resumed_step:
        return unknown(subject, "a complete save does not come back, either")
    if problem:
        copy = str(PurePath(restore.half_file or "any").with_name("*.bkp"))
        fix = _TO_COPY if copy in restore.kinds else _TO_FILES
        return finding(subject, f"{killed}{problem}", _BEFORE, fix, brief=headline(f"it does not come back: {problem}"))
    if restore.half is None:
        return unknown(subject, "no save began in the second epoch, or going on had no result")
    if restore.half == "silent":
        observed = f"{killed}a save that was killed loads without an error, with other values than were saved"
        remedy = "Save under another name and rename the file when it is complete."
        return finding(subject, observed, "loading it raises an error", remedy, brief="it loads wrong values")
    return evidence(subject, _BEFORE)


def _backup(restore: JobRestore) -> Outcome:
    subject = "BackupAndRestore"
    if restore.backup_problem:
        return _raised(subject, restore.backup_problem, "fit goes on", _OTHER_CALLBACK)
    if not restore.backup_step:
        observed = "fit began with the first epoch again"
        return finding(subject, observed, "it goes on with the second", _OTHER_CALLBACK, brief="fit begins again")
    if restore.backup_apart:
        observed = f"other values than without the kill: {some(restore.backup_apart)}"
        return finding(subject, observed, _ALIKE, _OTHER_CALLBACK, brief="it trains on differently")
    return evidence(subject, "fit goes on with the interrupted epoch as if not killed")
