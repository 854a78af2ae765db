"""Which jobs come back: real jobs that are saved, killed and restored, with the findings that each must have.

``python -m benchmarks.restore_trials [JOB ...]`` prints a line for each job. ``--moments N`` kills each after 1 to N
steps of its second epoch, and 0 to N - 1 milliseconds after a save has begun. ``--folder`` is where they save.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from kdoctor.catalog.load import load_catalog
from kdoctor.facts import SmokeCase, SmokeRun
from kdoctor.probes.probe import Context
from kdoctor.probes.process.child import Children
from kdoctor.smoke.session import SmokeSession, SmokeSettings
from kdoctor.testing import compute_check
from kdoctor_job.own_model import OWN_MODEL, RESTORE, UserModel

_POSITION, _RANDOM, _CALLBACKS = "position in the data", "random numbers", "the job's callbacks"
_SAVED, _ALONE, _HALF = "the saved model", "one device", "half-written save"
CHECKS = ("job.restores", "job.resumes-exactly", "job.save-interval")


class Job(NamedTuple):
    """Functions of ``restored_jobs.py``, and the subjects of the findings."""

    model: str
    data: str
    arguments: str | None = None
    findings: tuple[str, ...] = ()


JOBS = {
    "no callbacks": Job("plain", "batches"),
    "Dropout, BatchNormalization": Job("random", "batches", "twice", (_RANDOM,)),
    "generators saved by a callback": Job("random", "batches", "generators_saved"),
    "EMA": Job("averaged", "batches", "twice"),
    "learning-rate schedule": Job("scheduled", "batches", "twice"),
    "LearningRateScheduler": Job("plain", "batches", "rate"),
    "mixed_float16, loss scale": Job("mixed", "batches", "twice"),
    "BackupAndRestore": Job("plain", "batches", "once", (_HALF,)),
    "BackupAndRestore(save_freq=3)": Job("plain", "batches", "in_the_middle", (_POSITION,)),
    "ModelCheckpoint, numbered": Job("plain", "batches", "numbered"),
    "ModelCheckpoint, one file": Job("plain", "batches", "one_file", (_HALF,)),
    "ModelCheckpoint, weights only": Job("plain", "batches", "weights", (_SAVED, _ALONE)),
    "tf.train.Checkpoint": Job("plain", "batches", "checkpoint"),
    "without the optimizer": Job("plain", "batches", "without_optimizer", (_SAVED, _ALONE)),
    "without the EMA": Job("averaged", "batches", "without_average", (_SAVED, _ALONE)),
    "without the loss scale": Job("mixed", "batches", "without_scale", (_SAVED, _ALONE)),
    "EarlyStopping, ReduceLROnPlateau": Job("plain", "batches", "several", (_CALLBACKS,)),
    "a callback that counts": Job("plain", "batches", "counts", (_CALLBACKS,)),
    "shuffled": Job("plain", "shuffled", "twice"),
    "arrays": Job("plain", "arrays", "twice"),
    "generator": Job("plain", "generator", "twice", (_POSITION,)),
    "steps_per_epoch": Job("plain", "endless", "endless_arguments", (_POSITION,)),
    "steps_per_epoch, skipping": Job("plain", "skipping", "endless_arguments"),
}


def trial(job: Job, folder: Path, moment: int = 0) -> list[str]:
    """The subjects of the findings and of what is unknown, in sequence of the checks."""
    module = f"{__package__}.restored_jobs:"
    named = module + job.arguments if job.arguments else None
    asked = UserModel(
        model=module + job.model, data=module + job.data, fit_arguments=named, steps=4, restore=str(folder)
    ).training()
    settings = (*asked.scenario.settings, ("moment", moment))
    scenario = replace(asked.scenario, cases=(RESTORE,), settings=settings)
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(Path.cwd()), *sys.path]))}
    context = Context(python=sys.executable, chosen_by="trials", environ=paths, children=Children())
    run = SmokeSession([scenario], SmokeSettings(devices_kind="cpu", replicas=2), context).run().runs[OWN_MODEL]
    if not isinstance(run, SmokeRun):
        return [run.unavailable]
    examined = SmokeCase(name="own-model", outcome="trained", replicas=2)
    return list(_problems(replace(run, cases=(*run.cases, examined))))


def _problems(run: SmokeRun) -> Iterator[str]:
    checks = load_catalog().checks
    for name in CHECKS:
        result = compute_check(checks[name], run)
        for judged in result.findings:
            sys.stderr.write(f"    {judged.finding.subject}: {judged.finding.observed}\n")
            yield judged.finding.subject
        if not result.findings:
            yield from (f"unknown: {item.subject}: {item.reason}" for item in result.unjudged)


def main() -> int:
    """Print a line for each job; 1 if one has other findings than it must have, or left something behind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="*", metavar="JOB", choices=[[], *JOBS], default=[])
    parser.add_argument("--moments", type=int, default=0)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        before = sorted(folder.iterdir())
        for name in options.jobs or JOBS:
            for moment in range(1, options.moments + 1) if options.moments else (0,):
                found = trial(JOBS[name], folder, moment)
                is_right = found == list(JOBS[name].findings) and sorted(folder.iterdir()) == before
                wrong += not is_right
                moments = f", moment {moment}" if moment else ""
                print(f"{'right' if is_right else 'WRONG'}: {name}{moments}: {', '.join(found) or 'pass'}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
