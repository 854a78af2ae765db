"""The known defects of Keras on several replicas: what a training shows of them, and what a report says about it.

Each is a part of a known failure, in a file ``*-defects.yaml`` of a package that registers as ``kdoctor.failures``.
Its check, its page, ``kdoctor explain``, the linter, the checks of a job and the scenario that trains it read this
record. A new one is a record, its reproduction, and a case in a scenario's program.
"""

from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from kdoctor.errors import UsageError
from kdoctor.plugins.installed import shipped_files

_FILES = "-defects.yaml"

Comparison = Literal["weights", "counted", "optimizer", "clipping", "values", "predictions", "masks", "finite"]
"""What a case that trained is compared by; see ``kdoctor_checks.smoke.defects``."""


class Defect(BaseModel):
    """A check of trainings that a known failure spoils."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    check: str
    """The id of the check."""
    failure: str = ""
    """The id of the known failure that has this record."""
    title: str
    """The healthy condition: one short sentence in the present tense."""
    why: str
    remedy: str
    """How to fix it in general."""
    source: Annotated[list[str], Field(min_length=1)]
    """Public pages with the criterion."""
    scenario: str
    cases: list[str] = []
    """Cases that the failure spoils, after those that the scenario's definition gives to the check."""
    alternatives: list[str] = []
    """Cases that train what to write instead."""
    compare: Comparison = "weights"
    raises: str = ""
    """The type of the error that it raises, or ``*`` for any."""
    message: str = ""
    """A part of the message of that error."""
    deviates: bool = False
    """Whether the result is wrong where that error is not raised."""
    observed: str = "{error} {phase} ({keras})"
    """What a finding about the error says; see ``kdoctor_checks.smoke.defects``."""
    expected: str = "it trains"
    brief: str = ""
    """The problem in a few words; empty for how the training ended."""
    fix: str
    """What a finding says to do."""
    reproduce: str = ""
    """The script that a finding names."""
    explained_by: list[str] = []
    """Checks whose failure explains this one."""

    @property
    def features(self) -> tuple[str, ...]:
        """The names of its cases in the version matrix: ``features/steps-per-execution``."""
        return tuple(f"{self.scenario.removeprefix('smoke.')}/{case}" for case in self.cases)

    @property
    def look(self) -> tuple[str, ...]:
        """The command that shows it."""
        return (f"kdoctor explain --reproduce {self.reproduce}",) if self.reproduce else ()


@cache
def load_defects() -> dict[str, Defect]:
    """The defects of all installed lists, by check.

    Raises:
        UsageError: a file is invalid.
    """
    return {defect.check: defect for defect in _records()}


def defect(check: str) -> Defect:
    """The defect that this check finds.

    Raises:
        UsageError: no list has it, so the installation is incomplete.
    """
    found = load_defects().get(check)
    if found is None:
        raise UsageError(f"no list of known failures has a defect for {check}", hint="Reinstall keras-doctor")
    return found


def _records() -> Iterator[Defect]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    for file in shipped_files("failures", _FILES):
        try:
            content: dict[str, Any] = yaml.load(file.read_bytes(), Loader=loader)  # noqa: S506 - a safe loader
            for failure in content["failure_modes"]:
                for record in failure.get("defects", ()):
                    yield Defect.model_validate({**record, "failure": failure["id"]})
        except (yaml.YAMLError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise UsageError(f"{file.name}: not a list of known failures: {error}") from error
