"""Facts about the job that is saved, killed and restored (``--restore``, ``--loop``)."""

from typing import Literal

from kdoctor.facts.bounds import Reason
from kdoctor.records import record


@record
class JobSaving:
    """What saving in the folder showed."""

    folder: str
    left_behind: tuple[str, ...] = ()
    """Folders in it that a kdoctor made that was killed, at most six."""
    save_problem: Reason = None
    """Why nothing can be saved in it."""
    unsaved: bool = False
    """Whether the job saved nothing in its steps."""
    no_room: bool = False
    """Whether the folder had no space for kdoctor's copies of the saves."""
    half_file: Reason = None
    """The kind of file that was cut off, if the job does not go on; of a loop in any case."""


@record
class JobRestore(JobSaving):
    """The job trained, saved, killed, and restored in fresh processes. What has no value was not reached."""

    own: bool = False
    """Whether the job's own callbacks saved and restored it, and not those of Keras."""
    own_left_out: bool | None = None
    """Whether it has callbacks that were not run, because they would save in the job's own folder."""
    not_run: Reason = None
    """Why the job was not trained to the first save."""
    load_problem: Reason = None
    """The error of loading it on all replicas, or of the training after that."""
    alone_problem: Reason = None
    """The same on one device."""
    half_problem: Reason = None
    backup_problem: Reason = None
    """The error of BackupAndRestore."""
    variables: int | None = None
    """Variables of the model and the optimizer that were compared."""
    lost: tuple[str, ...] | None = None
    """Those that are missing or have other bits after loading, at most six."""
    generators: int | None = None
    """Generators of random numbers whose states are variables; those of Keras 2 have none."""
    seeds: tuple[str, ...] = ()
    """States of random number generators that begin again after loading."""
    apart: tuple[str, ...] | None = None
    """Variables that the next epoch moves to other values than in the run that was not killed."""
    lost_alone: tuple[str, ...] | None = None
    """As ``lost``, after loading on one device."""
    forgotten: tuple[str, ...] = ()
    """Numbers of the job's callbacks that are others after it goes on."""
    resumed_step: int | None = None
    """Steps of the optimizer when the job had been restored."""
    repeated: int | None = None
    missing: int | None = None
    """Examples that were trained once more, or once less, than without the kill; None if not known."""
    epoch_again: bool = False
    """Whether ``fit`` went on with an epoch that had been trained."""
    position_unread: Reason = None
    """Why the examples were not compared."""
    begins_again: bool = False
    """Whether the data was seen to begin again, although the examples were not compared."""
    half: Literal["noticed", "silent", "gone"] | None = None
    """After a kill in a save, the job goes on from a complete one, goes on with wrong values, or begins again."""
    kinds: tuple[str, ...] = ()
    """Kinds of files that are saves, each with its folder and suffix, such as ``backup/*.h5``."""
    backup_step: int | None = None
    """As ``resumed_step``, with BackupAndRestore of Keras."""
    backup_apart: tuple[str, ...] | None = None
    """Variables that it does not restore, or that are others at the end."""
    save_s: float | None = None
    restore_s: float | None = None
    save_bytes: int | None = None
    free_bytes: int | None = None


@record
class JobGoingOn:
    """How the job's own training loop went on after a kill."""

    problem: Reason = None
    """How it ended, if not with its last step."""
    after: int | None = None
    """The step after which it goes on, judged by its first numbers; None if they are those of no step."""
    differs: int | None = None
    """The first step after that with other numbers than without the kill."""


@record
class JobLoop(JobSaving):
    """The job's own training loop, killed and restored in fresh processes. What has no value was not reached."""

    problem: Reason = None
    """How it ended before a kill, if not with its last step."""
    steps: int | None = None
    """Steps without a kill."""
    noise: float | None = None
    """The largest difference between the numbers of two runs without a kill, relative to their size, or 1."""
    killed_after: int | None = None
    """Steps before the kill between two saves; None if the numbers differ too much to compare them."""
    load: JobGoingOn | None = None
    """After that kill."""
    half: JobGoingOn | None = None
    """After a kill in a save."""
