"""The checks of a job that was saved, killed and restored."""

from typing import Any

from helpers.facts import smoke_case, smoke_run
from helpers.kdoctor_job.restored import GOOD
from helpers.rows import fails, passes, skips, table, unknown
from kdoctor.facts import SmokeRun
from kdoctor.model import Severity
from kdoctor_job.facts import JobRestore


def restored(replicas: int = 8, **changes: Any) -> SmokeRun:
    own = smoke_case("own-model", replicas)
    return smoke_run(
        "smoke.own-model", replicas, own, smoke_case("restore", replicas, job=JobRestore(**{**GOOD, **changes}))
    )


NOT_ASKED = smoke_run("smoke.own-model", 8, smoke_case("own-model", 8))
ENDED = smoke_run("smoke.own-model", 8, smoke_case("own-model", 8), failure="the process that runs the trainings died")
UNSAVED: dict[str, Any] = {**dict.fromkeys(GOOD), "folder": "/data/saves", "backup_epochs": ()}
UNREGISTERED = "TypeError: Could not locate class 'Own'."

test_restores = table(
    "job.restores",
    Severity.ERROR,
    passes(restored(), "14 variables", "the next epoch ends the same"),
    passes(restored(seeds=("seed_generator_state",)), "random numbers begin again (seed_generator_state)"),
    passes(restored(half="complete"), "it was complete"),
    passes(restored(half="absent"), "it left no file"),
    fails(restored(lost=("adam/momentum",)), "adam/momentum", of=["the saved model"]),
    fails(restored(apart=("dense/kernel",)), "dense/kernel", of=["the saved model"]),
    fails(restored(lost_alone=("dense/kernel",)), "on one device", of=["one device"]),
    fails(restored(alone_problem="ValueError: no"), "ValueError: no", of=["loading on one device"]),
    fails(restored(half="silent"), "without an error", of=["half-written save"]),
    fails(restored(backup_problem="ValueError: no"), "ValueError: no", of=["BackupAndRestore"]),
    fails(restored(backup_epochs=(0, 1)), "first epoch again", of=["BackupAndRestore"]),
    fails(restored(backup_apart=("dense/kernel",)), "dense/kernel", of=["BackupAndRestore"]),
    # What cannot be loaded anywhere is one finding, and the error says nothing about the killed save.
    fails(restored(load_problem=UNREGISTERED), "the complete save cannot be loaded, either"),
    fails(restored(load_problem=UNREGISTERED, alone_problem=UNREGISTERED), "Own", of=["loading on all replicas"]),
    fails(restored(**{**UNSAVED, "save_problem": "OSError: no space"}), "OSError", of=["saving"]),
    unknown(restored(not_run="ValueError: data")),
    unknown(restored(lost=None)),
    unknown(restored(apart=None)),
    unknown(restored(lost_alone=None)),
    unknown(restored(half=None)),
    unknown(restored(backup_epochs=())),
    unknown(restored(backup_apart=None)),
    unknown(ENDED),
    skips(NOT_ASKED),
)

# Young: the square root of 2 * 18 s * 50,700 h * 3600 s / 8 GPUs is 28,660 s, and 2 * 18 s / 28,660 s is 0.126 %.
test_save_interval = table(
    "job.save-interval",
    Severity.WARNING,
    passes(restored(), "18 s and 1.0 GiB a save, 25 s to load", "save every 8.0 h: 0.13%", "1024 GiB free"),
    # 0.5 s of one GPU interrupted every 50,700 h: 13,510 s, and 0.0074 %.
    passes(restored(1, save_s=0.5), "save every 3.8 h: 0.01%"),
    fails(restored(free_bytes=3 * 2**30), "3.0 GiB free", of=["/data/saves"]),
    unknown(restored(save_s=None)),
    unknown(restored(free_bytes=None)),
    skips(NOT_ASKED),
)
