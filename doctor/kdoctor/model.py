"""The vocabulary of a check: statuses, severities, findings and their ways out, and what a checklist assumes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

FAMILIES = ("versions", "driver", "gpu", "topology", "host", "environment", "smoke", "cluster", "job")
"""Families of checks, in the order of a report."""


class Status(str, Enum):
    """What became of a check."""

    PASS = "pass"
    """It was evaluated on evidence, and the evidence is good."""
    FAIL = "fail"
    """It was evaluated, and at least one subject is not as it should be."""
    SKIP = "skip"
    """It was not asked for, or a prerequisite failed."""
    UNKNOWN = "unknown"
    """It was asked for, but the evidence could not be had."""


class Severity(str, Enum):
    """How much a failure weighs. It belongs to the check; a checklist may change it."""

    ERROR = "error"
    """Do not start the job."""
    WARNING = "warning"
    """Start knowingly."""
    INFO = "info"
    """Good to know."""

    @property
    def rank(self) -> int:
        """0 for info, 2 for error: the greater, the graver."""
        return (Severity.INFO, Severity.WARNING, Severity.ERROR).index(self)


class Action(str, Enum):
    """The kind of work that a remedy is. The list is closed, so that programs can act on it."""

    CONFIGURE = "configure"
    REINSTALL = "reinstall"
    REBOOT = "reboot"
    INSPECT_HARDWARE = "inspect-hardware"
    CHANGE_CODE = "change-code"


@dataclass(frozen=True, kw_only=True)
class Remedy:
    """What to do about a finding. kdoctor prints it and never runs it."""

    summary: str
    """One sentence."""
    commands: tuple[str, ...] = ()
    """Shell commands that can be pasted, in order."""
    action: Action


@dataclass(frozen=True, kw_only=True)
class Rollback:
    """How to return to the last known good state.

    Make one with :meth:`to`, :meth:`irreversible` or :meth:`nothing`.
    """

    kind: Literal["commands", "irreversible", "nothing"]
    why: str
    """What the commands restore, or why there is nothing to do or no way back."""
    commands: tuple[str, ...] = ()
    """Shell commands, rendered from recorded values."""

    @classmethod
    def to(cls, state: str, *commands: str) -> Rollback:
        """The commands that restore ``state``, which must come from recorded values.

        Raises:
            ValueError: no command was given.
        """
        if not commands:
            raise ValueError("a rollback by commands needs at least one command")
        return cls(kind="commands", why=state, commands=commands)

    @classmethod
    def irreversible(cls, why: str) -> Rollback:
        """There is no way back, and why."""
        return cls(kind="irreversible", why=why)

    @classmethod
    def nothing(cls, why: str) -> Rollback:
        """Nothing was changed that could be rolled back, and why."""
        return cls(kind="nothing", why=why)


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One subject that is not as it should be."""

    subject: str
    """What it is about, named as the user's other tools name it."""
    observed: str
    expected: str
    remedy: Remedy
    rollback: Rollback


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """One subject that was judged, and what was read of it."""

    subject: str
    observed: str


@dataclass(frozen=True, kw_only=True)
class Unjudged:
    """One subject that should have been judged, but its evidence could not be had."""

    subject: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class NotApplicable:
    """The whole check has no subject here (one GPU has no pair). The check is then skipped."""

    reason: str


Outcome = Finding | Evidence | Unjudged | NotApplicable
"""What a check function yields."""

UNSET = "unset"
"""The value by which a checklist says that a variable must not be set."""


@dataclass(frozen=True, kw_only=True)
class GpuAssumption:
    """The GPUs that a checklist expects."""

    count: int | None = None
    """Exactly this many; 0 means that the checklist expects none."""
    at_least: int | None = None
    """This many or more."""
    model: str | None = None
    """Shell-style pattern of the name, for example ``NVIDIA H100*``."""


@dataclass(frozen=True, kw_only=True)
class Assumptions:
    """What a checklist takes for granted about the machine. Checks may ask for it like for facts."""

    python: str | None = None
    """Version specifier (PEP 440) of the interpreter."""
    packages: Mapping[str, str] = field(default_factory=dict)
    """Distribution name to version specifier."""
    gpus: GpuAssumption | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variable to its exact value, or to ``unset``."""
    framework: Mapping[str, str] = field(default_factory=dict)
    """``tensorflow`` and ``keras`` to a version specifier, ``flavour`` (``keras``, ``tf-keras``) and ``backend`` to
    a name: what ``tf.keras`` is, whichever distributions bring it."""
    sdk: Mapping[str, str] = field(default_factory=dict)
    """``cuda`` and ``cudnn`` to the specifier of the release that TensorFlow was built against."""
    driver: str | None = None
    """Version specifier of the NVIDIA driver."""
    libraries: Mapping[str, str] = field(default_factory=dict)
    """Library (``cudart``, ``cudnn``, ``nccl``, ...) to the specifier of the version that the loader would give."""
    flags: Mapping[str, str] = field(default_factory=dict)
    """Flag of ``XLA_FLAGS`` or ``TF_XLA_FLAGS``, or setting of Keras (``keras.floatx``), to its exact value, or to
    ``unset``."""
    image: str | None = None
    """Shell-style pattern of the container image's name."""

    @property
    def expects_gpus(self) -> bool:
        """Whether GPU checks apply: the checklist does not say ``gpus: {count: 0}``."""
        return self.gpus is None or self.gpus.count != 0

    def stated(self) -> frozenset[str]:
        """Names of the assumptions that are really made."""
        return frozenset(name for name, is_made in self.made().items() if is_made)

    def made(self) -> dict[str, bool]:
        """Each assumption by its name, and whether it is made."""
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
"""Names of all assumptions that a check may judge."""
