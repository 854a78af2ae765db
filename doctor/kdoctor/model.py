"""The vocabulary of checks: statuses, severities, findings with their fixes, and assumptions of checklists."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import Literal

from kdoctor.records import record

FAMILIES = ("versions", "driver", "gpu", "topology", "host", "environment", "smoke")
"""The families of kdoctor's own checks, in the order of a report. Plugins add others."""


def family_order(family: str) -> tuple[int, str]:
    """A sort key: kdoctor's own families first, then those of plugins by name."""
    return (FAMILIES.index(family) if family in FAMILIES else len(FAMILIES), family)


class Status(str, Enum):
    """The result of a check."""

    PASS = "pass"
    """Evaluated, with evidence, and no finding."""
    FAIL = "fail"
    """Evaluated, with at least one finding."""
    SKIP = "skip"
    """Not requested, not applicable, or a prerequisite failed."""
    UNKNOWN = "unknown"
    """Requested, but the evidence is missing."""


class Severity(str, Enum):
    """The weight of a failure. A checklist may change the severity of a check."""

    ERROR = "error"
    """Do not start the job."""
    WARNING = "warning"
    """The job can start, with a known risk."""
    INFO = "info"
    """For information."""

    @property
    def rank(self) -> int:
        """0 for info, 1 for warning, 2 for error."""
        return (Severity.INFO, Severity.WARNING, Severity.ERROR).index(self)


class Action(str, Enum):
    """The kind of work that a fix requires. The list is closed, so that programs can act on it."""

    CONFIGURE = "configure"
    REINSTALL = "reinstall"
    REBOOT = "reboot"
    INSPECT_HARDWARE = "inspect-hardware"
    CHANGE_CODE = "change-code"


@record
class Remedy:
    """How to fix a finding. kdoctor prints the commands and never runs them."""

    summary: str
    """One imperative sentence."""
    commands: tuple[str, ...] = ()
    """Shell commands that fix it, to paste in order. They contain real values and no placeholders where possible."""
    look: tuple[str, ...] = ()
    """Shell commands that only read, for what a person has to see before or instead of a fix."""
    action: Action

    @classmethod
    def configure(cls, summary: str, *commands: str, look: tuple[str, ...] = ()) -> Remedy:
        """Change a setting."""
        return cls(summary=summary, commands=commands, look=look, action=Action.CONFIGURE)

    @classmethod
    def reinstall(cls, summary: str, *commands: str, look: tuple[str, ...] = ()) -> Remedy:
        """Install packages or drivers."""
        return cls(summary=summary, commands=commands, look=look, action=Action.REINSTALL)

    @classmethod
    def reboot(cls, summary: str, *commands: str, look: tuple[str, ...] = ()) -> Remedy:
        """Restart the machine, or reset hardware."""
        return cls(summary=summary, commands=commands, look=look, action=Action.REBOOT)

    @classmethod
    def change_code(cls, summary: str, *commands: str, look: tuple[str, ...] = ()) -> Remedy:
        """Change the training script."""
        return cls(summary=summary, commands=commands, look=look, action=Action.CHANGE_CODE)

    @classmethod
    def inspect(cls, summary: str, *read: str, look: tuple[str, ...] = ()) -> Remedy:
        """Inspect hardware, after reading what these commands print."""
        return cls(summary=summary, look=(*read, *look), action=Action.INSPECT_HARDWARE)


OF_THE_CHECK = Remedy(summary="", action=Action.CONFIGURE)
"""What the docstring of the check says."""


@record
class Rollback:
    """How to undo the fix. Create one with ``to``, ``irreversible`` or ``nothing``."""

    kind: Literal["commands", "irreversible", "nothing"]
    why: str
    """What the commands restore, or why there are none."""
    commands: tuple[str, ...] = ()
    """Shell commands with recorded values."""

    @classmethod
    def to(cls, state: str, *commands: str) -> Rollback:
        """Commands that restore a recorded state.

        Raises:
            ValueError: no command was given.
        """
        if not commands:
            raise ValueError("a rollback by commands needs at least one command")
        return cls(kind="commands", why=state, commands=commands)

    @classmethod
    def irreversible(cls, why: str) -> Rollback:
        """The fix cannot be undone, and why."""
        return cls(kind="irreversible", why=why)

    @classmethod
    def nothing(cls, why: str) -> Rollback:
        """The fix changes nothing, and why."""
        return cls(kind="nothing", why=why)


READ_ONLY = Rollback.nothing("not needed (this step is read-only)")
_NO_COMMANDS = Rollback.nothing("no commands were given")


@record
class Finding:
    """One subject with a problem."""

    subject: str
    """What it is about, named as the user's other tools name it. A GPU is named by ``Gpu.subject``."""
    observed: str
    """The problem, with numbers and units. The full report prints it as ``{subject}: {observed}``."""
    expected: str
    remedy: Remedy = OF_THE_CHECK
    rollback: Rollback = _NO_COMMANDS
    """Not needed for a fix whose commands only read."""
    brief: str = ""
    """``observed`` in at most 60 characters, without values that differ from subject to subject. Findings of a check
    with the same brief are one problem of several subjects (``GPU 0-7: {brief}``). Empty: ``observed`` is short."""
    explained_by: tuple[str, ...] = ()
    """Ids of checks. If one of them failed, this finding follows from it and is not a separate problem. If both are
    about a GPU, it must be the same GPU."""
    explains: tuple[str, ...] = ("*",)
    """Shell-style patterns of the checks that this finding can explain, among those that name its check."""
    after: tuple[str, ...] = ()
    """Ids of checks. If one of them failed, this finding matters only once that is solved."""
    noted: bool = False
    """Whether the line of its family says it, even if it is of severity info: something happened on this machine."""

    def __post_init__(self) -> None:
        if self.rollback == _NO_COMMANDS and self.remedy.look and not self.remedy.commands:
            object.__setattr__(self, "rollback", READ_ONLY)

    @property
    def headline(self) -> str:
        """The problem in a few words, without its subject."""
        return self.brief or self.observed


@record
class Evidence:
    """One healthy subject and what was observed."""

    subject: str
    observed: str
    brief: str = ""
    """A value for the line of its family in the short report, without the subject: ``TensorFlow 2.21.0``. Subjects
    with the same brief are named once. Empty: not shown there."""


@record
class Unjudged:
    """One subject whose evidence is missing, and why."""

    subject: str
    reason: str
    explained_by: tuple[str, ...] = ()
    """Ids of checks. If one of them failed, the evidence is missing because of it. As in ``Finding``."""
    answered_by: str = ""
    """Id of a check that tries what a table does not know. If it passes, that is the evidence."""


@record
class NotApplicable:
    """The check has no subject on this machine, such as pairs of GPUs with one GPU. It is skipped."""

    reason: str


Outcome = Finding | Evidence | Unjudged | NotApplicable
"""What a check function yields."""

UNSET = "unset"
"""In a checklist: the variable must not be set."""


@record
class GpuAssumption:
    """GPUs that a checklist expects."""

    count: int | None = None
    """Exact number; 0 if no GPUs are expected."""
    at_least: int | None = None
    """Minimum number."""
    model: str | None = None
    """Shell-style pattern of the name, for example ``NVIDIA H100*``."""


@record
class Assumptions:
    """What a checklist assumes about the machine. Checks ask for it as they ask for facts."""

    python: str | None = None
    """Version specifier (PEP 440) of the interpreter."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Version specifiers by distribution name."""
    gpus: GpuAssumption | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    """Exact values by variable, or ``unset``."""
    framework: Mapping[str, str] = field(default_factory=dict)
    """Version specifiers of ``tensorflow`` and ``keras``, and names of the ``flavour`` (``keras``, ``tf-keras``) and
    ``backend``: what ``tf.keras`` is, independent of distributions."""
    sdk: Mapping[str, str] = field(default_factory=dict)
    """Specifiers of the ``cuda`` and ``cudnn`` releases that TensorFlow was built against."""
    driver: str | None = None
    """Version specifier of the NVIDIA driver."""
    libraries: Mapping[str, str] = field(default_factory=dict)
    """Specifiers of the versions that the loader finds, by library: ``cudart``, ``cudnn``, ``nccl``, ..."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """Exact values, or ``unset``, by flag of ``XLA_FLAGS`` or ``TF_XLA_FLAGS``, or by setting of Keras such as
    ``keras.floatx``."""
    image: str | None = None
    """Shell-style pattern of the container image's name."""

    @property
    def expects_gpus(self) -> bool:
        """Whether GPU checks apply: false for ``gpus: {count: 0}``."""
        return self.gpus is None or self.gpus.count != 0

    def stated(self) -> frozenset[str]:
        """Names of the assumptions that are made."""
        return frozenset(name for name, is_made in self.made().items() if is_made)

    def made(self) -> dict[str, bool]:
        """Whether each assumption is made, by name."""
        gpus = self.gpus or GpuAssumption()
        return {
            "python": self.python is not None,
            "packages": bool(self.packages),
            "environment": bool(self.environment),
            "framework": bool(self.framework),
            "sdk": bool(self.sdk),
            "driver": self.driver is not None,
            "libraries": bool(self.libraries),
            "flags": bool(self.flags),
            "image": self.image is not None,
            "gpus.count": bool(gpus.count) or gpus.at_least is not None,
            "gpus.model": gpus.model is not None,
        }


ASSUMPTIONS = frozenset(Assumptions().made())
"""Names of all assumptions that checks may judge."""
