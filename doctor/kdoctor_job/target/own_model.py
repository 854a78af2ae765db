"""The user's own job: ``kdoctor check --model train.py``, or ``--model package.module:callable --data ...``."""

from __future__ import annotations

import os
import shlex
import sys
from functools import partial
from pathlib import Path
from typing import Any, Callable, Mapping, Optional, Tuple, Union

from kdoctor_job.target.cloning import CopyError, clone
from kdoctor_job.target.data import Facts, read_again
from kdoctor_job.target.examine import Job
from kdoctor_job.target.first_step import FirstStep
from kdoctor_job.target.fitting import PART
from kdoctor_job.target.parts import PartError, find, is_model, keras_of
from kdoctor_job.target.restoring import restore
from kdoctor_job.target.saves import save_after_loop
from kdoctor_job.target.script import PART as SCRIPT
from kdoctor_job.target.script import OnOneDevice, stopped_at_fit, until_fit
from kdoctor_job.target.step_alone import Alone, examine, seed
from kdoctor_job.target.strategies import OwnStrategy, replace_own
from kdoctor_target.runner.case import Case, NotHere
from kdoctor_target.training.replicas import make_strategy

_DECIDING = {"KERAS_BACKEND": "tensorflow", "TF_USE_LEGACY_KERAS": "0"}
"""Variables that Keras and TensorFlow read at import, before the job's code is run here, and their defaults."""


def own_model(case: Case) -> None:
    """Find the model and the data, or the functions that make them, and examine them."""
    settings = case.settings
    is_script = settings["data"] is None
    until = partial(until_fit, settings["model"], settings["fit"])
    alone = Alone(case, until) if is_script and hasattr(os, "fork") else None
    strategy = make_strategy(case)
    own = replace_own(strategy)
    deciding = _DECIDING if case.devices_kind == "cpu" else {**_DECIDING, "CUDA_VISIBLE_DEVICES": ""}
    before = {name: os.environ.get(name, default) for name, default in deciding.items()}

    def examine_step(step: FirstStep, save: Optional[Facts]) -> None:
        _refuse_changed(before)
        case.phase("one device")
        found = {**examine(step, alone), "save": save}
        case.note(job={"strategy": own.made, "devices": own.devices, "step": found})

    def examine_job(find_job: Callable[[], Tuple[Any, ...]]) -> None:
        try:
            found = _found(own, find_job)
        finally:
            _refuse_changed(before)
            if alone is not None:
                alone.dismiss()
        if isinstance(found, PartError):
            case.note(job={"problem": found.record})
            return
        model, data, fit_arguments, fit = found
        may_lack_one = case.devices_kind == "cpu" or strategy.num_replicas_in_sync == 1
        if is_script and not own.made and is_model(model) and may_lack_one:
            model = _in_scope(model, strategy)
        if is_script and hasattr(data, "__next__"):
            data = read_again(data, settings["steps"])
        job = Job(
            model,
            data,
            steps=settings["steps"],
            steps_per_epoch=settings.get("steps_per_epoch"),
            budget_s=settings.get("budget_s"),
            fit_arguments=fit_arguments,
            own=own,
        )

        def note(facts: Facts) -> None:
            made = own.made or ("" if is_script else None)
            case.note(job={**facts, "strategy": made, "devices": own.devices, "workers": own.workers, "fit": fit})

        job.examine(strategy, note, case.phase)

    if not is_script:
        examine_job(lambda: _named(case))
        return
    case.phase(SCRIPT)
    seed()
    step = FirstStep(strategy)
    step.taken = lambda: case.go_on(partial(examine_step, step, save_after_loop()))
    examine_job(lambda: until(step, lambda found: case.go_on(lambda: examine_job(found))))


def _found(own: OwnStrategy, find_job: Callable[[], Tuple[Any, ...]]) -> Union[Tuple[Any, ...], PartError]:
    """The job, or why it has none."""
    try:
        return find_job()
    except PartError as error:
        if own.divides:
            raise NotHere(f"the job's logical devices are not made here. {error}") from error
        return error
    except OnOneDevice as error:
        if not own.made:
            raise
        return PartError(SCRIPT, str(error), error.fix)


def _refuse_changed(before: Mapping[str, str]) -> None:
    """Refuse code that sets variables, also code that raises, which may be because it did so too late.

    Raises:
        NotHere: one has another value than before.
    """
    for name, value in before.items():
        now = os.environ.get(name, value)
        if now != value:
            command = f"export {name}={shlex.quote(now)}"
            raise NotHere(f"the job sets {name} too late for this process: set it for kdoctor, too: {command}")


def _in_scope(model: Any, strategy: Any) -> Any:
    """A copy of the model on the replicas. Many scripts make a strategy only if there are several GPUs."""
    with strategy.scope():
        try:
            return clone(keras_of(model), model)
        except CopyError as error:
            raise NotHere(f"the script makes no strategy, and its model cannot be copied: {error}") from error


def _named(case: Case) -> Tuple[Any, Any, Any, None]:
    sys.path.insert(0, str(Path.cwd()))  # as with `python -m`: modules in the working directory can be imported
    with stopped_at_fit():
        case.phase("model")
        model = find("model", case.settings["model"])
        case.phase("data")
        data = find("data", case.settings["data"])
        named = case.settings.get("fit_arguments")
        return model, data, find(PART, named) if named else None, None


CASES = {"restore": restore}
