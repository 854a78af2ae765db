"""The user's training loop as a scenario: ``kdoctor check --loop package.module:function --restore DIR``."""

import os
from dataclasses import replace
from pathlib import Path

from kdoctor.smoke.definition import define
from kdoctor.smoke.scenario import AddedTraining, Framework
from kdoctor_job.own_model import OWN_DEADLINE_S, checked_function

_FRAMEWORKS: dict[str, Framework] = {"jax": "jax", "torch": "torch"}
"""By the backend of Keras."""
LOOP = "own-loop"
"""The name of its only case."""

SCENARIO = define(
    "smoke.own-loop",
    tier="job",
    title="The user's training loop",
    expect="The loop is killed between two saves and in a save, and goes on with the same numbers in a fresh process.",
    cases=(LOOP,),
    deadline_s=OWN_DEADLINE_S,
    typical_s=30.0,
    folder=Path(__file__).parent / "target",
    needs_options="kdoctor check --loop package.module:function --restore DIR",
)


def loop_training(loop: str, place: str, *, steps: int, workers: int, deadline_s: float) -> AddedTraining:
    """The scenario with this loop.

    Args:
        loop: ``package.module:function``.
        place: the folder on the file system where it saves.
        steps: half of the steps of a run.
        workers: processes that run the loop together.
        deadline_s: of the whole, in seconds.

    Raises:
        UsageError: the name is malformed.
    """
    checked_function("--loop", loop)
    settings = (("loop", loop), ("restore", place), ("steps", steps), ("workers", workers))
    framework = _FRAMEWORKS.get(os.environ.get("KERAS_BACKEND", ""), SCENARIO.framework)
    scenario = replace(SCENARIO, settings=settings, deadline_s=deadline_s, framework=framework)
    return AddedTraining(scenario=scenario, options=f"--loop {loop}", folder=Path.cwd())
