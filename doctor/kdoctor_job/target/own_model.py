"""The user's own model and data, named as ``package.module:callable``: ``kdoctor check --model --data``."""

from __future__ import annotations

import sys
from pathlib import Path

from kdoctor_job.target.examine import Job
from kdoctor_job.target.fitting import PART
from kdoctor_job.target.parts import PartError, find
from kdoctor_job.target.restoring import restore
from kdoctor_job.target.strategies import replace_own
from kdoctor_target.runner.case import Case
from kdoctor_target.training.replicas import make_strategy


def own_model(case: Case) -> None:
    """Load the two callables and examine the objects that they return."""
    # As with `python -m`: modules in the working directory can be imported.
    sys.path.insert(0, str(Path.cwd()))
    strategy = make_strategy(case)
    own = replace_own(strategy)
    settings = case.settings
    try:
        case.phase("model")
        model = find("model", settings["model"])
        case.phase("data")
        data = find("data", settings["data"])
        named = settings.get("fit_arguments")
        fit_arguments = find(PART, named) if named else None
    except PartError as error:
        case.note(job={"problem": error.record})
        return
    job = Job(
        model,
        data,
        steps=settings["steps"],
        steps_per_epoch=settings.get("steps_per_epoch"),
        budget_s=settings.get("budget_s"),
        fit_arguments=fit_arguments,
        own=own,
    )
    job.examine(strategy, lambda facts: case.note(job=facts), case.phase)


CASES = {"restore": restore}
