"""What is known of a machine, and what is said about a release on it."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Literal

from kdoctor.matrix.gpus import NamedGpu
from kdoctor.matrix.model import Release

Outcome = Literal["runs", "does-not-run", "unknown"]
Rule = Literal["platform", "python", "glibc", "driver", "gpu", "cudnn", "libraries", "known-bad"]


@dataclass(frozen=True, kw_only=True)
class Machine:
    """What is known of the machine that TensorFlow shall run on. None is "not known", which is never "good"."""

    driver: str | None = None
    """Version of the NVIDIA driver."""
    gpus: tuple[NamedGpu, ...] | None = None
    """Its GPUs; an empty tuple: it has none, and the CPU is asked about."""
    python: str | None = None
    """Python, ``major.minor`` or longer."""
    glibc: str | None = None
    """Version of the C library; None also where it does not matter."""
    platform: str | None = None
    """``linux-x86_64``; None: the matrix's own."""
    unnamed_gpus: tuple[str, ...] = ()
    """GPUs of the machine that the matrix does not know."""

    @property
    def for_cpu(self) -> bool:
        """Whether there is no GPU to judge."""
        return self.gpus == () and not self.unnamed_gpus


@dataclass(frozen=True, kw_only=True)
class Reason:
    """One thing that rules a release out, that is not known, or that one should know."""

    rule: Rule
    text: str
    failure: str | None = None
    """Id of the failure mode that this is, where it has one."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether one release runs on a machine."""

    release: Release
    outcome: Outcome
    against: tuple[Reason, ...] = ()
    """Why it does not run."""
    missing: tuple[Reason, ...] = ()
    """What would have to be known to say that it runs."""
    cautions: tuple[Reason, ...] = ()
    """What to know when it runs."""
    requirements: tuple[str, ...] = ()
    """What to install, with the pins that keep a range from resolving to something broken."""

    @property
    def command(self) -> str:
        """The command that installs it."""
        return shlex.join(["python", "-m", "pip", "install", *self.requirements])
