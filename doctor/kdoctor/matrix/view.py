"""What ``kdoctor matrix`` shows, in any format."""

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from packaging.version import InvalidVersion, Version

from kdoctor.matrix.compatibility import best, compatible, judge, needed_driver
from kdoctor.matrix.cuda import Earlier
from kdoctor.matrix.model import Release, VersionMatrix
from kdoctor.matrix.requirements import Needs
from kdoctor.matrix.truth import KerasOnReplicas, for_release
from kdoctor.matrix.values import numbers, older_driver, python_minors
from kdoctor.matrix.verdict import Machine, Outcome, Reason, Verdict
from kdoctor.records import record

_FIRST_CODE = 35
"""The oldest architecture that the wheels ever had code for."""


@dataclass(frozen=True)
class Fact:
    """A fact about the machine, for the head of the page."""

    label: str
    """``Driver``, ``GPUs``, ``Python``, ..."""
    value: str
    origin: str
    """An option, or a file of this machine."""


@record
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
    today: dt.date | None = None
    """For the age of the matrix; None to ignore it."""
    detailed: bool = False
    """Whether to list each release with all its reasons."""

    @property
    def best(self) -> Verdict | None:
        """The release to install."""
        return best(self.verdicts)

    @property
    def unlisted(self) -> str | None:
        """The installed TensorFlow, if it is newer than the release to install: it has no row."""
        listed = {release.version for release in self.matrix.releases}
        if self.installed is None or self.installed in listed or self.matrix.framework != "TensorFlow":
            return None
        try:
            newer = self.best is None or Version(self.installed) > self.best.release.key
        except InvalidVersion:
            newer = False
        return self.installed if newer else None

    @property
    def keras(self) -> list[KerasOnReplicas]:
        """What was measured with Keras for the release that is shown or recommended."""
        release = self.needs.release if self.needs else self.best.release if self.best else None
        return for_release(self.matrix, release) if release else []

    @property
    def advice(self) -> tuple[str, ...]:
        """What is known about the platform."""
        elsewhere = self.matrix.elsewhere(self.machine.platform) if self.machine else None
        return elsewhere.advice if elsewhere else ()

    @property
    def on_cpu(self) -> tuple[str, ...]:
        """The commands that install the newest release for the CPU, where no release uses a GPU of the machine."""
        rules = [{reason.rule for reason in verdict.against} for verdict in self.verdicts]
        stable = [verdict for verdict in self.verdicts if not verdict.release.prerelease]
        if self.machine is None or any(verdict.outcome != "does-not-run" for verdict in stable):
            return ()
        if not any("platform" in found for found in rules) and not all("gpu" in found for found in rules):
            return ()
        alone = replace(self.machine, gpus=(), unnamed_gpus=())
        found = best([judge(self.matrix, verdict.release, alone) for verdict in self.verdicts])
        return found.commands if found else ()

    @property
    def on_jax(self) -> Verdict | None:
        """The JAX to install for Keras 3, where no TensorFlow uses the GPUs."""
        if self.machine is None or self.needs or self.matrix.framework == "JAX" or self.best is not None:
            return None
        return best(compatible(self.matrix.of("jax"), self.machine))

    @property
    def with_wheels(self) -> Verdict | None:
        """The release to install with the NVIDIA wheels, where none runs with the libraries of the system."""
        if self.machine is None or not self.machine.system_libraries or self.best is not None or self.needs is not None:
            return None
        return best(compatible(self.matrix, replace(self.machine, cuda=None, cudnn=None)))

    @property
    def earlier(self) -> Earlier | None:
        """The last TensorFlow that ran with a driver that is too old for the whole matrix."""
        if self.machine is None or self.needs or self.matrix.framework == "JAX" or not self.verdicts:
            return None
        driver, gpus = self.machine.driver, self.machine.gpus or ()
        kinds = [kind for gpu in gpus if (kind := self.matrix.capability(gpu.capability))]
        oldest = min((row.oldest_driver for row in self.matrix.cuda_majors), key=numbers)
        if driver is None or not older_driver(driver, oldest) or any(kind.number < _FIRST_CODE for kind in kinds):
            return None
        if any(kind.oldest_driver and older_driver(driver, kind.oldest_driver) for kind in kinds):
            return None
        return next((row for row in reversed(self.matrix.earlier) if not older_driver(driver, row.driver)), None)

    @property
    def instead(self) -> Verdict | None:
        """The release to install where the named one does not run."""
        if self.machine is None or self.needs is None or any(item.outcome != "does-not-run" for item in self.verdicts):
            return None
        return best(compatible(self.matrix, self.machine))

    @property
    def nearest(self) -> Verdict | None:
        """If none runs: the newest one that only lacks facts, else the newest one with the fewest kinds of problems."""
        if self.best is not None or self.needs is not None:
            return None
        stable = [item for item in self.verdicts if not item.release.prerelease]
        undecided = [item for item in stable if item.outcome == "unknown"]
        return min(undecided or stable, key=lambda item: len({reason.rule for reason in item.against}), default=None)


@dataclass(frozen=True)
class Group:
    """Releases with the same decisive reason."""

    outcome: Outcome
    reason: Reason
    releases: tuple[Release, ...]
    """Newest first."""


OUTCOMES = {"runs": "runs", "does-not-run": "no", "unknown": "unknown"}
_DECISIVE = ("platform", "gpu", "driver", "cudnn", "python", "glibc", "libraries", "known-bad")
"""The rules, in the order in which a person can change least."""


def groups(verdicts: Sequence[Verdict]) -> list[Group]:
    """The releases that do not run, or may not, by the reason that decides most; newest first."""
    found: dict[tuple[Outcome, Reason], list[Release]] = {}
    for verdict in verdicts:
        if verdict.outcome != "runs":
            first = min(verdict.against or verdict.missing, key=lambda reason: _DECISIVE.index(reason.rule))
            if first.rule in ("python", "gpu") and first.brief:
                first = replace(first, text=first.brief)
            found.setdefault((verdict.outcome, first), []).append(verdict.release)
    return [Group(outcome, reason, tuple(releases)) for (outcome, reason), releases in found.items()]


def span(releases: Sequence[Release], known: Sequence[Release]) -> str:
    """``2.17.0 to 2.18.1, 2.15.1``: the releases, newest first, with neighbours of ``known`` joined."""
    plugins = {release.extra for release in releases}
    neighbours = (release for release in known if release.extra in plugins)
    places = {(release.version, release.cuda): place for place, release in enumerate(neighbours)}
    runs: list[list[Release]] = []
    for release in releases:
        if runs and _next_to(places, runs[-1][-1], release):
            runs[-1].append(release)
        else:
            runs.append([release])
    return ", ".join(run[0].version if len(run) == 1 else f"{run[-1].version} to {run[0].version}" for run in runs)


def _next_to(places: Mapping[tuple[str, str], int], first: Release, second: Release) -> bool:
    return abs(places[first.version, first.cuda] - places[second.version, second.cuda]) == 1


def shown_releases(verdicts: Sequence[Verdict]) -> list[Verdict]:
    """The releases that run, without older patch releases of a minor release."""
    newest: dict[tuple[object, ...], Verdict] = {}
    for verdict in verdicts:
        if verdict.outcome == "runs":
            release = verdict.release
            newest.setdefault((release.key.release[:2], release.prerelease, release.extra), verdict)
    return list(newest.values())


def named(view: View, release: Release) -> str:
    """``TensorFlow 2.21.0``, ``JAX 0.12.0 (CUDA 13)``."""
    for_cpu = view.machine is not None and view.machine.for_cpu
    plugin = f" (CUDA {release.cuda})" if view.matrix.framework == "JAX" and not for_cpu else ""
    return f"{view.matrix.framework} {release.version}{plugin}"


def shown_driver(view: View, release: Release) -> str | None:
    """The oldest driver that runs a release on the GPUs of the machine; None if not known."""
    if view.machine is None:
        return needed_driver(view.matrix, release, ())
    return needed_driver(view.matrix.at(view.machine.platform), release, view.machine.gpus or ())


def reasons(verdict: Verdict) -> list[str]:
    """Why a release does not run, or what is not known."""
    against = [f"{reason.text}{failure_text(reason.failure)}" for reason in verdict.against]
    return against or [f"unknown: {reason.text}{failure_text(reason.failure)}" for reason in verdict.missing]


def notes(verdict: Verdict) -> list[str]:
    """What to know about a release that runs, or may run."""
    if verdict.outcome == "does-not-run":
        return []
    return [f"{reason.text}{failure_text(reason.failure)}" for reason in verdict.cautions]


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


def failure_text(failure: str | None) -> str:
    """`` [tf2161_runpath]``, or nothing."""
    return f" [{failure}]" if failure else ""


def matrix_name(view: View) -> str:
    """Its name and date, and its age where newer releases are likely."""
    age = view.matrix.too_old(view.today) if view.today else None
    return f"{view.matrix.name}, {view.matrix.updated}{f' ({age})' if age else ''}"


def matrix_text(view: View) -> str:
    """Its name, date and age, and the platform that was judged."""
    platform = (view.machine.platform if view.machine else None) or view.matrix.platform
    return f"{matrix_name(view)}, {platform}"


def outcome_text(view: View, verdict: Verdict) -> str:
    """The verdict in a word."""
    on_cpu = view.machine is not None and view.machine.for_cpu and verdict.outcome == "runs"
    return "on CPU" if on_cpu else OUTCOMES[verdict.outcome]


def mark(view: View, verdict: Verdict) -> str:
    """``>`` for the release to install, ``*`` for the installed one."""
    chosen = ">" if view.best is not None and verdict.release is view.best.release else ""
    return chosen + ("*" if view.installed == verdict.release.version else "")


def cells(view: View, release: Release) -> tuple[str, ...]:
    """The columns of a release."""
    return (
        release.version,
        python_range(release),
        release.cuda,
        release.cudnn or "?",
        shown_driver(view, release) or "?",
        code_range(release),
        *("; ".join(_specifier(line) for line in asks(release, [name])) for name in ("keras", "numpy", "protobuf")),
    )


def _specifier(line: str) -> str:
    return line.lstrip("abcdefghijklmnopqrstuvwxyz-").strip() or "any"
