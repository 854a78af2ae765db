"""The list of known failures and messages (``failure-modes.yaml``)."""

from __future__ import annotations

from functools import cached_property
from importlib import metadata, resources
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from kdoctor.errors import UsageError

ENTRY_POINTS = "kdoctor.failures"
"""The group of entry points for packages with lists of failures."""
_SCRIPT = ".py.txt"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class KnownFailure(_Part):
    """A failure that is documented with its symptom and cause. Checks name it as what they detect."""

    id: str
    kind: Literal["registration", "crash", "hang", "silent", "slow"]
    symptom: str
    cause: str
    messages: list[str] = []
    """What programs print, as templates of :mod:`kdoctor.failures.match`."""
    source: list[str]
    lint: list[str] = []
    """Rules of the linter that find it in a script."""
    reproduce: list[str] = []
    """Scripts of ``kdoctor explain --reproduce`` that show it."""
    not_before_the_job: str | None = None
    """Why no check detects it before the job."""


class KnownMessage(_Part):
    """A message of another problem, with the checks that detect it."""

    meaning: str
    messages: Annotated[list[str], Field(min_length=1)]
    checks: list[str]
    source: Annotated[list[str], Field(min_length=1)]
    harmless: bool = False


class KnownFailures(_Part):
    """The whole list."""

    schema_: Annotated[Literal["kdoctor/failure-modes/v1"], Field(alias="schema")]
    failure_modes: list[KnownFailure]
    messages: list[KnownMessage]

    @cached_property
    def by_id(self) -> dict[str, KnownFailure]:
        """The failures by id."""
        return {failure.id: failure for failure in self.failure_modes}


def load_failures() -> KnownFailures:
    """The shipped list.

    Raises:
        UsageError: it is missing, so the installation is incomplete.
    """
    for entry in metadata.entry_points(group=ENTRY_POINTS):
        for file in resources.files(entry.load()).iterdir():
            if file.name.endswith(".yaml"):
                return KnownFailures.model_validate(yaml.safe_load(file.read_bytes()))
    raise UsageError("the list of known failures was not found", hint="Reinstall keras-doctor")


def load_reproductions() -> dict[str, str]:
    """Standalone scripts that show a failure by their exit status, by name."""
    files = [
        file
        for entry in metadata.entry_points(group=ENTRY_POINTS)
        for file in resources.files(entry.load()).iterdir()
        if file.name.endswith(_SCRIPT)
    ]
    return {file.name.removesuffix(_SCRIPT): file.read_text(encoding="utf-8") for file in sorted(files, key=str)}


def source_link(source: str) -> str:
    """The address of an issue that is named as ``owner/repository#number``; other sources as they are."""
    repository, _, number = source.partition("#")
    is_issue = number.isdecimal() and repository.count("/") == 1
    return f"https://github.com/{repository}/issues/{number}" if is_issue else source
