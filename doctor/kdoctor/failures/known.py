"""The known failures: the YAML files of the packages that register as ``kdoctor.failures``."""

from functools import cache, cached_property
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kdoctor.defects import Defect
from kdoctor.errors import UsageError
from kdoctor.plugins.installed import shipped_files

_SCRIPT = ".py.txt"

Kind = Literal["registration", "crash", "hang", "silent", "slow", "harmless"]
Certainty = Literal["certain", "likely", "possible"]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


class Fix(_Part):
    """One thing to do about a failure."""

    do: str
    commands: list[str] = []
    """Commands that can be pasted as they are."""
    when: dict[str, str] = {}
    """Package to the versions (PEP 440) for which this is the fix; empty for every version."""


class Example(_Part):
    """An excerpt of a log, as a program prints it."""

    log: str
    source: str


class KnownFailure(_Part):
    """A failure that is documented with its symptom and cause. Checks name it as what they detect."""

    id: str
    kind: Kind
    symptom: str
    """The message by which people meet it, or what they see."""
    cause: str
    messages: list[str] = []
    """What programs print on one line: patterns of :mod:`kdoctor.failures.pattern`."""
    at_end: list[str] = []
    """Patterns of the last line of a job that then does nothing."""
    clues: list[str] = []
    """Patterns of other lines that make this cause likelier than another one with the same message."""
    clue_needed: bool = False
    """Whether its messages alone say nothing, so that a clue must be in the log."""
    unless: list[str] = []
    """Patterns of lines that rule it out."""
    needs: dict[str, str] = {}
    """Package to versions (PEP 440). Another version in the log rules the failure out."""
    since: str | None = None
    """The first day on which it can have happened, such as that of a new GPU. An older log rules the failure out."""
    certainty: Certainty = "certain"
    """How sure the cause is where only the message is known."""
    without_gpus: bool = False
    """Whether each run on a machine without GPUs has its message, so that alone it does not show that a job failed."""
    follows: bool = False
    """Whether it usually is the consequence of another failure, which then is the cause."""
    in_another: bool = False
    """Whether it says that another process failed, whose own lines have the cause wherever they stand."""
    ends_a_hang: bool = False
    """Whether it ends a job from outside, so that the last line before it shows what the job was waiting for."""
    ends_a_slow_job: bool = False
    """Whether it ends a job that took too long, so that a failure which makes jobs slow is its likely cause."""
    explains: list[str] = []
    """Failures that are its consequences, even if they are causes elsewhere."""
    table: Literal["xids", "sxids"] | None = None
    """A table of the driver's codes, which explains the number that the pattern names ``code``."""
    fix: list[Fix] = []
    checks: list[str] = []
    """Checks that confirm it, besides those that name it as what they detect."""
    source: Annotated[list[str], Field(min_length=1)]
    lint: list[str] = []
    """Rules of the linter that find it in a script."""
    reproduce: list[str] = []
    """Scripts of ``kdoctor explain --reproduce`` that show it."""
    defects: list[Defect] = []
    """The checks of trainings that it spoils, if it is a defect of Keras."""
    not_before_the_job: str | None = None
    """Why no check detects it before the job."""
    examples: list[Example] = []

    @property
    def can_be_ruled_out(self) -> bool:
        """Whether a line with its message can be that of another failure."""
        return bool(self.needs or self.unless or self.clue_needed or self.since)

    @property
    def harmless(self) -> bool:
        """Whether it stops nothing."""
        return self.kind == "harmless"


class FailureFile(_Part):
    """A file with known failures."""

    schema_: Annotated[Literal["kdoctor/failure-modes/v2"], Field(alias="schema")]
    failure_modes: list[KnownFailure]


class KnownFailures(_Part):
    """All known failures."""

    failure_modes: list[KnownFailure]

    @cached_property
    def by_id(self) -> dict[str, KnownFailure]:
        """The failures by id."""
        return {failure.id: failure for failure in self.failure_modes}


@cache
def load_failures() -> KnownFailures:
    """The failures of all installed lists, in order of their files.

    Raises:
        UsageError: a file is invalid, two have the same failure, or there is none, so the installation is incomplete.
    """
    failures: dict[str, KnownFailure] = {}
    for file in shipped_files("failures", ".yaml"):
        for failure in parse_failures(file.name, file.read_bytes()):
            if failure.id in failures:
                raise UsageError(f"{file.name}: the failure {failure.id} is defined twice")
            failures[failure.id] = failure
    if not failures:
        raise UsageError("the list of known failures was not found", hint="Reinstall keras-doctor")
    return KnownFailures(failure_modes=list(failures.values()))


def parse_failures(name: str, content: bytes) -> list[KnownFailure]:
    """The failures of a file.

    Raises:
        UsageError: it is invalid.
    """
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        return FailureFile.model_validate(yaml.load(content, Loader=loader)).failure_modes  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValidationError) as error:
        raise UsageError(f"{name}: not a list of known failures: {error}") from error


def load_reproductions() -> dict[str, str]:
    """Standalone scripts that show a failure by their exit status, by name."""
    files = shipped_files("failures", _SCRIPT)
    return {file.name.removesuffix(_SCRIPT): file.read_text(encoding="utf-8") for file in files}


def source_link(source: str) -> str:
    """The address of an issue that is named as ``owner/repository#number``; other sources as they are."""
    repository, _, number = source.partition("#")
    is_issue = number.isdecimal() and repository.count("/") == 1
    return f"https://github.com/{repository}/issues/{number}" if is_issue else source
