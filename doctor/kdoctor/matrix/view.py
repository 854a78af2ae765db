"""What ``kdoctor matrix`` shows, in any format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kdoctor.matrix.compatibility import best
from kdoctor.matrix.model import Release, VersionMatrix, python_minors
from kdoctor.matrix.requirements import Needs
from kdoctor.matrix.verdict import Machine, Verdict


@dataclass(frozen=True)
class Fact:
    """A fact about the machine, for the head of the page."""

    label: str
    """``Driver``, ``GPUs``, ``Python``, ..."""
    value: str
    origin: str
    """An option, or a file of this machine."""


@dataclass(frozen=True, kw_only=True)
class View:
    """The verdicts for a machine; or what one release needs, with its verdict if a machine was given."""

    matrix: VersionMatrix
    machine: Machine | None
    facts: tuple[Fact, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    """Newest first."""
    installed: str | None = None
    """The version of ``tensorflow`` or ``tf-nightly`` in the target environment."""
    needs: Needs | None = None

    @property
    def best(self) -> Verdict | None:
        """The release to install."""
        return best(self.verdicts)

    @property
    def nearest(self) -> Verdict | None:
        """If none runs: the newest one that only lacks facts, else the newest one with the fewest kinds of problems."""
        if self.best is not None or self.needs is not None:
            return None
        stable = [item for item in self.verdicts if not item.release.prerelease]
        undecided = [item for item in stable if item.outcome == "unknown"]
        return min(undecided or stable, key=lambda item: len({reason.rule for reason in item.against}), default=None)


def reasons(verdict: Verdict) -> list[str]:
    """Why a release does not run, or what is not known."""
    against = [f"{reason.text}{_failure(reason.failure)}" for reason in verdict.against]
    return against or [f"unknown: {reason.text}{_failure(reason.failure)}" for reason in verdict.missing]


def notes(verdict: Verdict) -> list[str]:
    """What to know about a release that runs."""
    return [f"{reason.text}{_failure(reason.failure)}" for reason in verdict.cautions]


def python_range(release: Release) -> str:
    """``3.9-3.12``."""
    minors = python_minors(release.python)
    return minors[0] if len(minors) == 1 else f"{minors[0]}-{minors[-1]}"


def code_range(release: Release) -> str:
    """``6.0-8.9``: the range of capabilities that all its kernels have machine code for."""
    common = sorted(set.intersection(*(set(kernels.cubins) for kernels in release.kernels)))
    return f"{common[0] / 10:.1f}-{common[-1] / 10:.1f}" if common else "none"


def asks(release: Release, names: Sequence[str]) -> list[str]:
    """What it requires of these distributions, as in its METADATA."""
    wanted = [line for line in release.requires if line.startswith(tuple(names))]
    return [line for line in wanted if not line.startswith("keras-preprocessing")]


def nccl_text(release: Release) -> str:
    """Which NCCL it uses, and whether an installed one matters."""
    nccl = release.nccl
    version = nccl.version or "unknown version"
    if nccl.linkage == "static":
        return f"{version}, built into TensorFlow, which ignores an installed NCCL ({nccl.basis})"
    return f"{version}, loaded when needed ({nccl.basis})"


def _failure(failure: str | None) -> str:
    return f" [{failure}]" if failure else ""
