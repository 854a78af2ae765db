"""The checks of a job that was saved, killed and restored."""

from typing import Any

from helpers.facts import smoke_case, smoke_run
from helpers.kdoctor_job.restored import GOOD
from helpers.rows import fails, passes, skips, table, unknown
from kdoctor.facts import KernelLog, KernelLogEvent, SmokeRun
from kdoctor.model import Severity
from kdoctor_job.restore_facts import JobRestore


def restored(replicas: int = 8, **changes: Any) -> SmokeRun:
    own = smoke_case("own-model", replicas)
    return smoke_run(
        "smoke.own-model", replicas, own, smoke_case("restore", replicas, job=JobRestore(**{**GOOD, **changes}))
    )


NOT_ASKED = smoke_run("smoke.own-model", 8, smoke_case("own-model", 8))
ENDED = smoke_run("smoke.own-model", 8, smoke_case("own-model", 8), failure="the process that runs the trainings died")
UNSAVED: dict[str, Any] = {**dict.fromkeys(GOOD), "folder": "/data/saves"}
COPIED: dict[str, Any] = {"half": None, "half_problem": "JSONDecodeError", "kinds": ("*.keras", "b/*.bkp", "b/*.h5")}
FULL = "OSError: [Errno 28] No space left on device"
UNREGISTERED = "TypeError: Could not locate class 'Own'."

BETWEEN: dict[str, Any] = {
    "own": True, "resumed_step": 6, "backup_step": None, "backup_apart": None,
}  # fmt: skip
"""The job's own callbacks restored it from a save in an epoch."""
OWN = restored(**BETWEEN)

test_restores = table(
    "job.restores",
    Severity.ERROR,
    passes(restored(), "14 variables", "the next epoch ends the same"),
    passes(OWN, of=["the saved model", "one device", "half-written save"]),
    passes(restored(**BETWEEN, apart=None), "the next epoch has other examples"),
    fails(restored(resumed_step=0, lost=("adam/momentum",)), "adam/momentum", of=["the saved model"]),
    fails(
        restored(**{**BETWEEN, "half": "gone", "half_file": "backup/*.h5"}),
        "while it wrote backup/*.h5: the job began again with its first step",
        of=["half-written save"],
    ),
    fails(
        restored(**{**BETWEEN, "half": None, "half_problem": "OSError: truncated"}),
        "double_checkpoint=True",
        of=["half-written save"],
    ),
    fails(restored(**BETWEEN | COPIED | {"half_file": "b/*.h5"}), "copy each .bkp"),
    fails(restored(**BETWEEN | COPIED | {"half_file": "*.keras"}), "a name for each save"),
    unknown(restored(own_left_out=True), "a parameter named folder"),
    unknown(restored(unsaved=True)),
    unknown(restored(no_room=True, half=None), unjudged=["space", "half-written save"]),
    fails(restored(apart=("dense/kernel",)), "dense/kernel", of=["the saved model"]),
    fails(restored(apart=("a",), forgotten=("ReduceLROnPlateau.wait",)), "the callbacks forget numbers"),
    # What is lost alike everywhere is one finding.
    fails(restored(lost=("a",), lost_alone=("a",)), "as on all", unjudged=["one device", "half-written save"]),
    fails(restored(lost=("adam/m",), lost_alone=("b",)), "loading: adam/m", of=["the saved model", "one device"]),
    fails(restored(lost_alone=("dense/kernel",)), "on one device", of=["one device"]),
    fails(restored(alone_problem="ValueError: no"), "ValueError: no", of=["loading on one device"]),
    fails(restored(half="silent"), "without an error", of=["half-written save"]),
    fails(restored(backup_problem="ValueError: no"), "ValueError: no", of=["BackupAndRestore"]),
    fails(restored(backup_step=0), "first epoch again", of=["BackupAndRestore"]),
    fails(restored(backup_apart=("dense/kernel",)), "dense/kernel", of=["BackupAndRestore"]),
    # What cannot be loaded anywhere is one finding, and the error says nothing about the killed save.
    fails(restored(load_problem="ValueError: no", kinds=("*.h5",)), "Save whole models as .keras"),
    fails(restored(load_problem="ValueError: no", kinds=("*.weights.h5",)), "Register own classes"),
    fails(restored(load_problem="To use the BackupAndRestore callback, you model must be built before"), "Build the"),
    fails(restored(load_problem=UNREGISTERED), "a complete save does not come back, either"),
    fails(restored(load_problem=UNREGISTERED, alone_problem=UNREGISTERED), "Own", of=["loading on all replicas"]),
    fails(restored(**UNSAVED | {"save_problem": FULL}), FULL, "Make /data/saves writable", of=["saving"]),
    fails(restored(**UNSAVED | {"save_problem": "TBNotInstalledError"}), "Run fit with", of=["saving"]),
    unknown(restored(not_run="ValueError: data")),
    unknown(restored(**{**BETWEEN, "apart": None, "position_unread": "no seed"}), unjudged=["the next epoch"]),
    unknown(restored(lost=None)),
    unknown(restored(lost_alone=None)),
    unknown(restored(half=None)),
    passes(restored(backup_step=None, backup_apart=None), of=["the saved model", "one device", "half-written save"]),
    unknown(ENDED),
    skips(NOT_ASKED),
)

test_resumes_exactly = table(
    "job.resumes-exactly",
    Severity.WARNING,
    passes(restored(), of=["position in the data"]),
    passes(restored(generators=2), "2 generators", of=["random numbers", "position in the data"]),
    fails(restored(seeds=("seed_generator_state",)), "seed_generator_state", of=["random numbers"]),
    passes(OWN, "after step 6", of=["position in the data", "the job's callbacks"]),
    passes(restored(**BETWEEN, apart=None), "in another order"),
    fails(
        restored(**{**BETWEEN, "repeated": 32, "missing": 16}),
        "32 examples trained once more and 16 once less",
        of=["position in the data"],
    ),
    fails(restored(**{**BETWEEN, "repeated": 32, "epoch_again": True}), "initial_epoch", of=["position in the data"]),
    fails(restored(**BETWEEN, forgotten=("EarlyStopping.best",)), "EarlyStopping.best", of=["the job's callbacks"]),
    # Numbers of callbacks are not known to come back if the job did not.
    unknown(restored(**{**BETWEEN, "resumed_step": None, "repeated": None}), of=["position in the data"]),
    unknown(restored(**{**BETWEEN, "repeated": None, "position_unread": "no seed"}), "no seed"),
    fails(
        restored(**{**BETWEEN, "repeated": None, "position_unread": "no seed", "begins_again": True}), "begins again"
    ),
    skips(restored(load_problem="ValueError: no")),
    skips(NOT_ASKED),
)

LOG: dict[str, Any] = {"source": "/dev/kmsg", "lines": 9, "complete": True}


def fallen(*hours: float, **more: Any) -> KernelLog:
    """A kernel log with an Xid 79 at each of these hours."""
    events = [
        KernelLogEvent(kind="xid", code=79, text="Xid 79, GPU has fallen off the bus.", boot_s=3600 * at)
        for at in hours
    ]
    return KernelLog(**{**LOG, "events": tuple(events), **more})


# Young: the square root of 2 * 18 s * 50,700 h * 3600 s / 8 GPUs is 28,660 s, and 2 * 18 s / 28,660 s is 0.126 %.
test_save_interval = table(
    "job.save-interval",
    Severity.WARNING,
    passes(restored(), "18 s and 1.0 GiB a save, 25 s to load", "save every 8.0 h: 0.13%", "1024 GiB free"),
    # 0.5 s of one GPU interrupted every 50,700 h: 13,510 s, and 0.0074 %.
    passes(restored(1, save_s=0.5), "save every 3.8 h: 0.01%"),
    # Four in 800 hours, the last two at once: the square root of 2 * 18 s * 800 h * 3600 s / 3 is 5,879 s.
    passes(restored(), fallen(100, 300, 799.9, 800), "save every 98 min", "the kernel log has 3"),
    # One in the first minute of 800 hours: 2 * 18 s * 800 h * 3600 s, not of a minute.
    passes(restored(), fallen(0.02, until_s=3600 * 800.0), "save every 2.8 h: 0.35%", "has 1 since the boot"),
    # At the boot: ten minutes, T = 147 s. Daly: 1 - 147 / (600 * e^(25/600) * (e^(165/600) - 1)).
    passes(restored(), fallen(0.0), "save every 2 min: 25.76%"),
    passes(restored(), fallen(100, complete=False), "save every 8.0 h"),
    passes(restored(), KernelLog(**LOG), "save every 8.0 h"),
    passes(restored(), fallen(100), {"hours": 50_700.0}, "save every 8.0 h"),
    fails(
        restored(left_behind=("/data/kdoctor-restore-x y",)),
        commands=("rm -r '/data/kdoctor-restore-x y'",),
        of=["/data/kdoctor-restore-x y"],
    ),
    fails(restored(free_bytes=3 * 2**30), "3.0 GiB free", of=["/data/saves"]),
    unknown(restored(save_s=None)),
    unknown(restored(free_bytes=None)),
    skips(NOT_ASKED),
)
