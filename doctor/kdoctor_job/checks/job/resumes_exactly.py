from collections.abc import Iterator

from kdoctor.model import NotApplicable, Outcome, Severity
from kdoctor.text.lists import counted, some
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import headline, job_check
from kdoctor_job.restore_facts import JobRestore

_POSITION, _RANDOM, _CALLBACKS = "position in the data", "random numbers", "the job's callbacks"
_TO_POSITION = (
    'Save at the end of an epoch (save_freq="epoch"), and make epochs short with steps_per_epoch. Data that goes on '
    "over epochs must begin where it was: let the function of --data take the folder, and use dataset.skip. Make seeds "
    "of shuffles and augmentations depend on the epoch."
)
_TO_EPOCH = (
    "Let fit go on with the epoch of the save: with BackupAndRestore, or with initial_epoch, which the function of "
    "--fit-arguments may return."
)
_TO_SEEDS = (
    "Save their values in a callback, and assign them in on_train_begin, because no way of saving in Keras does: "
    "{v.path: v.numpy() for v in model.variables if v.path.endswith('seed_generator_state')}."
)
_TO_NUMBERS = (
    "Save these numbers with the model, in a file or in a variable of the model, and set them in on_train_begin. "
    "ModelCheckpoint(save_best_only=True) gets initial_value_threshold."
)


@job_check("job.resumes-exactly", Severity.WARNING)
def resumes_exactly(restore: JobRestore) -> Iterator[Outcome]:
    """A restored job goes on with the next examples, and its callbacks know what they knew.

    Why: the variables can be right, and yet the job is another one. A save in the middle of an epoch has no position
    in the data: Keras 3 begins the epoch again, and Keras 2 trains on its first examples again and leaves out the last
    ones. EarlyStopping and ModelCheckpoint forget the best value, so that a worse model may replace the best one.
    Generators of random numbers, as of Dropout, begin again: they draw the numbers of earlier steps. Measured with two
    Dropout layers and 8 seeds, the test loss was 2.574 (standard deviation 0.003) without an interruption, 2.583
    (0.007) with one after half of 20 epochs, and 2.755 (0.059) with one after each.
    Remedy: save at the end of each epoch, or save the position and what callbacks know.
    Source: https://keras.io/api/callbacks/backup_and_restore/
    """
    if restore.save_problem or restore.load_problem or restore.resumed_step == 0:
        yield NotApplicable(reason="the job did not come back")
        return
    if restore.seeds:
        observed = f"generators begin again after loading: {some(restore.seeds)}"
        yield finding(_RANDOM, observed, "they go on", _TO_SEEDS, brief="generators begin again")
    elif restore.generators:
        yield evidence(_RANDOM, f"{counted(restore.generators, 'generator')} of Keras come back")
    yield _position(restore)
    if restore.forgotten:
        observed = f"other numbers after the job goes on: {some(restore.forgotten)}"
        yield finding(
            _CALLBACKS,
            observed,
            "those at the time of the save",
            _TO_NUMBERS,
            brief=headline(f"they forget {some(restore.forgotten)}"),
        )
    elif restore.own and restore.resumed_step:
        yield evidence(_CALLBACKS, "their numbers are those at the time of the save")


def _position(restore: JobRestore) -> Outcome:
    expected = "each as often as without the kill"
    if restore.begins_again:
        observed = f"going on after step {restore.resumed_step}: the data begins again, with the first step's examples"
        return finding(_POSITION, observed, expected, _TO_POSITION, brief="the data begins again")
    if restore.repeated is None or restore.missing is None:
        return unknown(_POSITION, restore.position_unread or "going on had no result")
    if restore.repeated or restore.missing:
        observed = (
            f"going on after step {restore.resumed_step}: {counted(restore.repeated, 'example')} trained once more "
            f"and {restore.missing} once less than without the kill"
        )
        if restore.epoch_again:
            return finding(
                _POSITION, f"{observed}: fit begins an epoch again", expected, _TO_EPOCH, brief="fit begins again"
            )
        return finding(_POSITION, observed, expected, _TO_POSITION, brief="examples differ")
    order = "" if restore.apart is not None else ", in another order"
    return evidence(_POSITION, f"after step {restore.resumed_step}, each example as often as without the kill{order}")
