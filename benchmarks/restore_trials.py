"""Which jobs and loops come back: real ones that are saved, killed and restored, with the findings that each must have.

``python -m benchmarks.restore_trials [JOB ...]`` prints a line for each job. ``--moments N`` kills each after 1 to N
steps of its second epoch or half, and 1 to N milliseconds after a save has begun. ``--folder`` is where they save.
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from kdoctor.catalog.load import load_catalog
from kdoctor.facts import SmokeCase, SmokeRun, Unavailable
from kdoctor.probes.probe import Context
from kdoctor.probes.process.child import Children
from kdoctor.smoke.scenario import Scenario
from kdoctor.smoke.session import SmokeSession, SmokeSettings
from kdoctor.testing import compute_check
from kdoctor_job.own_loop import loop_training
from kdoctor_job.own_model import RESTORE, UserModel

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
    "ModelCheckpoint, then BackupAndRestore": Job("plain", "batches", "numbered_and_backup", (_HALF,)),
    "ModelCheckpoint, one file": Job("plain", "batches", "one_file", (_HALF,)),
    "ModelCheckpoint, weights only": Job("plain", "batches", "weights", (_SAVED,)),
    "tf.train.Checkpoint": Job("plain", "batches", "checkpoint"),
    "without the optimizer": Job("plain", "batches", "without_optimizer", (_SAVED,)),
    "without the EMA": Job("averaged", "batches", "without_average", (_SAVED,)),
    "without the loss scale": Job("mixed", "batches", "without_scale", (_SAVED, _ALONE)),
    "EarlyStopping, ReduceLROnPlateau": Job("plain", "batches", "several", (_CALLBACKS,)),
    "a callback that counts": Job("plain", "batches", "counts", (_CALLBACKS,)),
    "shuffled": Job("plain", "shuffled", "twice"),
    "shuffled, more than is trained": Job("plain", "shuffled_more", "twice"),
    "two optimizers": Job("alternating", "batches", "checkpoint"),
    "without the second optimizer": Job("alternating", "batches", "without_second", (_SAVED,)),
    "saved in a thread": Job("plain", "batches", "in_a_thread"),
    "arrays": Job("plain", "arrays", "twice"),
    "parts of different sizes": Job("two_inputs", "unpaired", "twice"),
    "parts of different sizes, save_freq=3": Job("two_inputs", "unpaired", "in_the_middle", (_POSITION,)),
    "batches that grow": Job("plain", "growing", "twice"),
    "generator": Job("plain", "generator", "twice", (_POSITION,)),
    "generator without end": Job("plain", "generator_without_end", "endless_arguments", (_POSITION,)),
    "steps_per_epoch": Job("plain", "endless", "endless_arguments", (_POSITION,)),
    "steps_per_epoch, skipping": Job("plain", "skipping", "endless_arguments"),
}


class Loop(NamedTuple):
    """A function of ``restored_loops.py``, and its findings: their subjects and the problem in a few words."""

    loop: str
    findings: tuple[str, ...] = ()
    workers: int = 1


_LOOP, _DIFFERENTLY = "training loop", "training loop: goes on differently after a kill"
LOOPS = {
    "loop": Loop("whole"),
    "loop without the optimizer": Loop("without_optimizer", (_DIFFERENTLY,)),
    "loop without the position": Loop("without_position", (_DIFFERENTLY,)),
    "loop that begins again": Loop("begins_again", (f"{_LOOP}: begins again after a kill",)),
    "loop of two workers": Loop("two_workers", workers=2),
    "loop of two workers without the position": Loop("two_workers_without_position", (_DIFFERENTLY,), workers=2),
    "loop with one file": Loop("one_file", (f"{_HALF}: does not go on after a kill",)),
    "loop with one file that is renamed": Loop("one_file_renamed"),
    "loop with two files": Loop("two_files", (f"{_HALF}: does not go on after a kill",)),
    "loop on JAX": Loop("on_jax"),
    "loop on JAX with the first key": Loop("on_jax_with_the_first_key", (_DIFFERENTLY,)),
    "loop that raises": Loop("raises", (f"{_LOOP}: FileNotFoundError",)),
    "loop that yields nothing": Loop("yields_nothing", (f"{_LOOP}: yields_nothing returned an int",)),
    "loop without a seed": Loop("unseeded", (f"unknown: {_LOOP}",)),
    "loop that saves nothing": Loop("saves_nothing", (f"unknown: {_LOOP}",)),
}


def loop_trial(loop: Loop, folder: Path, moment: int = 0) -> list[str]:
    """The findings with their problems, and the subjects of what is unknown."""
    name = f"{__package__}.restored_loops:{loop.loop}"
    asked = loop_training(name, str(folder), steps=8, workers=loop.workers, deadline_s=300)
    run = _run(replace(asked.scenario, settings=(*asked.scenario.settings, ("moment", moment))))
    return list(_problems(run, ("job.loop-resumes",))) if isinstance(run, SmokeRun) else [run.unavailable]


def trial(job: Job, folder: Path, moment: int = 0) -> list[str]:
    """The subjects of the findings and of what is unknown, in sequence of the checks."""
    module = f"{__package__}.restored_jobs:"
    named = module + job.arguments if job.arguments else None
    asked = UserModel(
        model=module + job.model, data=module + job.data, fit_arguments=named, steps=4, restore=str(folder)
    ).training()
    settings = (*asked.scenario.settings, ("moment", moment))
    scenario = replace(asked.scenario, cases=(RESTORE,), settings=settings)
    run = _run(scenario)
    if not isinstance(run, SmokeRun):
        return [run.unavailable]
    examined = SmokeCase(name="own-model", outcome="trained", replicas=2)
    found = _problems(replace(run, cases=(*run.cases, examined)), CHECKS)
    return [problem if problem.startswith("unknown") else problem.partition(": ")[0] for problem in found]


def _run(scenario: Scenario) -> SmokeRun | Unavailable:
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(Path.cwd()), *sys.path]))}
    context = Context(python=sys.executable, chosen_by="trials", environ=paths, children=Children())
    settings = SmokeSettings(devices_kind="cpu", replicas=2)
    return SmokeSession([scenario], settings, context).run().runs[scenario.id]


def _problems(run: SmokeRun, names: Sequence[str]) -> Iterator[str]:
    checks = load_catalog().checks
    for name in names:
        result = compute_check(checks[name], run)
        for judged in result.findings:
            sys.stderr.write(f"    {judged.finding.subject}: {judged.finding.observed}\n")
            yield f"{judged.finding.subject}: {judged.finding.headline}"
        if not result.findings:
            yield from (f"unknown: {item.subject}" for item in result.unjudged)


def main() -> int:
    """Print a line for each job; 1 if one has other findings than it must have, or left something behind."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("jobs", nargs="*", metavar="JOB", choices=[[], *JOBS, *LOOPS], default=[])
    parser.add_argument("--moments", type=int, default=0)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        before = sorted(folder.iterdir())
        for name in options.jobs or (*JOBS, *LOOPS):
            for moment in range(1, options.moments + 1) if options.moments else (0,):
                wanted = (JOBS.get(name) or LOOPS[name]).findings
                found = trial(JOBS[name], folder, moment) if name in JOBS else loop_trial(LOOPS[name], folder, moment)
                as_wanted = len(found) == len(wanted) and all(map(str.startswith, found, wanted))
                is_right = as_wanted and sorted(folder.iterdir()) == before
                wrong += not is_right
                moments = f", moment {moment}" if moment else ""
                print(f"{'right' if is_right else 'WRONG'}: {name}{moments}: {', '.join(found) or 'pass'}", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
