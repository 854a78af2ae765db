import math
from collections.abc import Iterator

from kdoctor.model import Outcome, Severity
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.facts import JobRestore

HOURS_PER_GPU = 50_700.0
"""Hours between two unexpected interruptions of one GPU: 419 in 54 days on 16,384 GPUs (arXiv 2407.21783, table 5)."""
_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_LEAST_SAVES = 2
"""The new file and the one before, until the new one is complete."""


@job_check("job.save-interval", Severity.WARNING, "job.restores")
def save_interval(
    restore: JobRestore, replicas: int | None, *, hours: float = HOURS_PER_GPU, keep: int = 3
) -> Iterator[Outcome]:
    """The folder has space for the saves, and a save costs little time.

    Why: saving too seldom loses work at each interruption, saving too often loses time. The interval that loses least
    is the square root of twice the time of a save and the time between interruptions (Young 1974). By default,
    ``hours`` is that of one GPU in the training of Llama 3; a job on several GPUs is interrupted that many times more
    often. The time of a save is measured on the folder's file system, for the weights
    and the optimizer of the job as it is. ``keep`` is the number of files that the job keeps.
    Remedy: free space, or keep fewer files.
    Sources:
        https://arxiv.org/abs/2407.21783
        https://doi.org/10.1145/361147.361115
    """
    if restore.save_s is None or restore.save_bytes is None or replicas is None:
        yield unknown("saving", restore.save_problem or "the time of a save was not measured")
        return
    between_s = hours * 3600 / replicas
    interval_s = math.sqrt(2 * restore.save_s * between_s)
    share = restore.save_s / interval_s + interval_s / (2 * between_s)
    loads = f", {restore.restore_s:.2g} s to load" if restore.restore_s is not None else ""
    yield evidence(
        "saving",
        f"{restore.save_s:.2g} s and {_bytes(restore.save_bytes)} a save{loads}; save every {_minutes(interval_s)}: "
        f"{share:.2%} of the time is lost, if a GPU is interrupted every {hours:,.0f} hours",
    )
    wanted = max(_LEAST_SAVES, keep + 1) * restore.save_bytes
    if restore.free_bytes is None:
        yield unknown(restore.folder, "its free space was not read")
    elif restore.free_bytes < wanted:
        observed = f"{_bytes(restore.free_bytes)} free, and {keep} saves and the next one need {_bytes(wanted)}"
        remedy = "Free space there, save elsewhere, or keep fewer files."
        yield finding(restore.folder, observed, f"at least {_bytes(wanted)} free", remedy, brief="too little space")
    else:
        yield evidence(restore.folder, f"{_bytes(restore.free_bytes)} free, {_bytes(wanted)} needed")


def _bytes(size: int) -> str:
    """``1.5 GiB``, ``21 KiB``."""
    unit, name = next((item for item in _UNITS if size >= item[0]), (1, "bytes"))
    return f"{size / unit:.0f} {name}" if size >= 100 * unit or unit == 1 else f"{size / unit:.1f} {name}"


def _minutes(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 7200 else f"{seconds / 60:.0f} min"  # noqa: PLR2004
