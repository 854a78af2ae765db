"""What ``kdoctor matrix`` shows, before it is written in a format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kdoctor.matrix.compatibility import best
from kdoctor.matrix.model import Release, VersionMatrix, python_minors
from kdoctor.matrix.requirements import Needs
from kdoctor.matrix.verdict import Machine, Verdict


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One thing known of the machine, for the head of the page."""

    label: str
    """``Driver``, ``GPUs``, ``Python``, ..."""
    value: str
    origin: str
    """Where it is from: an option, or a file of this machine."""


@dataclass(frozen=True, kw_only=True)
class View:
    """The matrix judged on a machine; or what one release needs, with its verdict if a machine was named."""

    matrix: VersionMatrix
    machine: Machine | None
    facts: tuple[Fact, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    """Newest first."""
    installed: str | None = None
    """The version of the distribution ``tensorflow`` or ``tf-nightly`` that the target has."""
    needs: Needs | None = None

    @property
    def best(self) -> Verdict | None:
        """The release to install."""
        return best(self.verdicts)

    @property
    def nearest(self) -> Verdict | None:
        """Where none runs: the newest one that only lacks facts, else the one with the least against it."""
        if self.best is not None or self.needs is not None:
            return None
        stable = [item for item in self.verdicts if not item.release.prerelease]
        undecided = [item for item in stable if item.outcome == "unknown"]
        return min(undecided or stable, key=lambda item: len(item.against), default=None)


def reasons(verdict: Verdict) -> list[str]:
    """Why a release does not run, or what is not known, in words."""
    against = [f"{reason.text}{_failure(reason.failure)}" for reason in verdict.against]
    return against or [f"not known: {reason.text}{_failure(reason.failure)}" for reason in verdict.missing]


def notes(verdict: Verdict) -> list[str]:
    """What to know of a release that runs."""
    return [f"{reason.text}{_failure(reason.failure)}" for reason in verdict.cautions]


def python_range(release: Release) -> str:
    """``3.9-3.12``."""
    minors = python_minors(release.python)
    return minors[0] if len(minors) == 1 else f"{minors[0]}-{minors[-1]}"


def code_range(release: Release) -> str:
    """``6.0-9.0``: the capabilities between which it has machine code."""
    return f"{release.cubins[0] / 10:.1f}-{release.cubins[-1] / 10:.1f}"


def asks(release: Release, names: Sequence[str]) -> list[str]:
    """What it asks of these distributions, as its METADATA says it."""
    wanted = [line for line in release.requires if line.startswith(tuple(names))]
    return [line for line in wanted if not line.startswith("keras-preprocessing")]


def nccl_words(release: Release) -> str:
    """Which NCCL it uses, and whether an installed one matters."""
    nccl = release.nccl
    version = nccl.version or "version not known"
    if nccl.linkage == "static":
        return f"{version}, inside TensorFlow: an installed NCCL is not used ({nccl.basis})"
    return f"{version}, opened when it is needed ({nccl.basis})"


def _failure(failure: str | None) -> str:
    return f" [{failure}]" if failure else ""
