import math
import shlex
from collections.abc import Iterator
from itertools import pairwise

from kdoctor.facts import KernelLog, Unavailable
from kdoctor.model import Evidence, NotApplicable, Outcome, Remedy, Severity
from kdoctor_checks._kernel_log import is_failure
from kdoctor_checks.smoke._judging import evidence, finding, unknown
from kdoctor_job.checks.job._user_model import job_check
from kdoctor_job.restore_facts import JobRestore

HOURS_PER_GPU = 50_700.0
"""Hours between two unexpected interruptions of one GPU: 419 in 54 days on 16,384 GPUs (arXiv 2407.21783, table 5)."""
_ONE_S = 600.0
"""Failures with fewer seconds between them are one interruption."""
_MOST = 300.0
"""Exponents beyond which all time is lost, and numbers would overflow."""
_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_LEAST_SAVES = 2
"""The new file and the one before, until the new one is complete."""


@job_check("job.save-interval", Severity.WARNING)
def save_interval(
    restore: JobRestore, replicas: int | None, log: KernelLog | Unavailable, *, hours: float = 0.0, keep: int = 3
) -> Iterator[Outcome]:
    """The folder has space for the saves, and a save costs little time.

    Why: saving too seldom loses work at each interruption, saving too often loses time. The interval that loses least
    is the square root of twice the time of a save and the time between interruptions (Young 1974). That is ``hours``
    for one GPU. Without it, it is the mean time between those that the kernel log has since the boot, or 50,700 hours
    for one GPU as in the training of Llama 3; a job on several GPUs is interrupted that many times more often.
    The time that is lost is Daly's, with the load after each interruption.
    A failure within ten minutes of another is not a further one. The time of a save is measured on the folder's file
    system, for the weights and the optimizer of the job as it is. ``keep`` is the number of files that the job keeps.
    Remedy: free space, or keep fewer files.
    Sources:
        https://arxiv.org/abs/2407.21783
        https://doi.org/10.1145/361147.361115
        https://doi.org/10.1016/j.future.2004.11.016
    """
    for folder in restore.left_behind:
        removal = Remedy.configure("Remove it.", f"rm -r {shlex.quote(folder)}")
        yield finding(folder, "left behind by a kdoctor that was killed", "no folder of an earlier run", removal)
    if restore.save_s is None or restore.save_bytes is None or replicas is None:
        reason = "the time of a save was not measured"
        yield NotApplicable(reason="the job was not saved") if restore.save_problem else unknown("saving", reason)
        return
    logged = [] if hours or not isinstance(log, KernelLog) else _interruptions(log)
    each = hours or HOURS_PER_GPU
    seen_s = max([_ONE_S, getattr(log, "until_s", None) or 0.0, *logged])
    between_s = seen_s / len(logged) if logged else each * 3600 / replicas
    known = (
        f"as the kernel log has {len(logged)} since the boot" if logged else f"if a GPU has one in {each:,.0f} hours"
    )
    interval_s = math.sqrt(2 * restore.save_s * between_s)
    share = _lost(interval_s, restore.save_s, restore.restore_s or 0.0, between_s)
    loads = f", {restore.restore_s:.2g} s to load" if restore.restore_s is not None else ""
    brief = f"save every {_minutes(interval_s)}"
    observed = (
        f"{restore.save_s:.2g} s and {_bytes(restore.save_bytes)} a save{loads}; {brief}: {share:.2%} of the time is "
        f"lost, with an interruption every {between_s / 3600:,.0f} hours ({known})"
    )
    yield Evidence(subject="saving", observed=observed, brief=brief)
    wanted = max(_LEAST_SAVES, keep + 1) * restore.save_bytes
    if restore.free_bytes is None:
        yield unknown(restore.folder, "its free space was not read")
    elif restore.free_bytes < wanted:
        observed = f"{_bytes(restore.free_bytes)} free, and {keep} saves and the next one need {_bytes(wanted)}"
        remedy = "Free space there, save elsewhere, or keep fewer files."
        yield finding(restore.folder, observed, f"at least {_bytes(wanted)} free", remedy, brief="too little space")
    else:
        yield evidence(restore.folder, f"{_bytes(restore.free_bytes)} free, {_bytes(wanted)} needed")


def _lost(interval_s: float, save_s: float, load_s: float, between_s: float) -> float:
    """The share of the time that does not train: Daly 2006, complete model. Never more than 1."""
    grown = math.expm1(min((interval_s + save_s) / between_s, _MOST)) * math.exp(min(load_s / between_s, _MOST))
    return 1 - interval_s / (between_s * grown)


def _interruptions(log: KernelLog) -> list[float]:
    """When GPUs failed, in seconds since the boot. Empty if the log does not reach back to it."""
    failures = sorted(event.boot_s for event in log.events if is_failure(event) and event.boot_s is not None)
    return [at for last, at in pairwise([-_ONE_S, *failures]) if at - last >= _ONE_S] if log.complete else []


def _bytes(size: int) -> str:
    """``1.5 GiB``, ``21 KiB``."""
    unit, name = next((item for item in _UNITS if size >= item[0]), (1, "bytes"))
    return f"{size / unit:.0f} {name}" if size >= 100 * unit or unit == 1 else f"{size / unit:.1f} {name}"


def _minutes(seconds: float) -> str:
    return f"{seconds / 3600:.1f} h" if seconds >= 7200 else f"{seconds / 60:.0f} min"  # noqa: PLR2004
