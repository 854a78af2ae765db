"""The user's own model and data as a scenario: ``kdoctor check --model package.module:function --data ...``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from kdoctor.errors import UsageError
from kdoctor.smoke.scenario import Scenario

OWN_MODEL = "smoke.own-model"
"""The scenario's id. It is run only where a model is named."""
OWN_DEADLINE_S = 600.0
"""Seconds for the model, its data and its steps, unless the user says otherwise."""
DEFAULT_STEPS = 8

_PLACE = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*:[^\W\d]\w*(?:\.[^\W\d]\w*)*")


@dataclass(frozen=True, kw_only=True)
class OwnJob:
    """A model and data of the user's, named as ``package.module:function``."""

    model: str
    data: str
    steps: int = DEFAULT_STEPS
    steps_per_epoch: int | None = None
    deadline_s: float = OWN_DEADLINE_S

    def __post_init__(self) -> None:
        """Refuse what cannot be a place.

        Raises:
            UsageError: a name is malformed.
        """
        for option, place in (("--model", self.model), ("--data", self.data)):
            if not _PLACE.fullmatch(place):
                hint = "Such as jobs.train:build_model, which is found from the working folder."
                raise UsageError(f"{option} {place}: expected package.module:function", hint=hint)

    def of(self, scenario: Scenario) -> Scenario:
        """The scenario with this job in it."""
        settings = (
            ("model", self.model),
            ("data", self.data),
            ("steps", self.steps),
            ("steps_per_epoch", self.steps_per_epoch),
        )
        return replace(scenario, settings=settings, deadline_s=self.deadline_s)
