"""Judges a machine by the matrix: which TensorFlow runs there, and why each other one does not.

Pure: a matrix and a machine in, verdicts out. The rules are the module's functions named ``_*_rule``; everything
about versions stands in the matrix.

A GPU runs a build by machine code of its own major architecture that is not newer than it, or by PTX that is not
newer than it and that the driver compiles (then the driver must be as new as the toolkit that made the PTX:
minor-version compatibility does not cover it). With several GPUs every one of them must run it, so the least capable
and the newest decide.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from kdoctor import version_matrix
from kdoctor.matrix.gpus import NamedGpu
from kdoctor.matrix.model import (
    KnownBad,
    Release,
    VersionMatrix,
    cudnn_requirement,
    numbers,
    parse_requirement,
    python_minors,
    specifier,
)

Outcome = Literal["runs", "does-not-run", "unknown"]
Rule = Literal["platform", "python", "glibc", "driver", "gpu", "cudnn", "libraries", "known-bad"]

_STOPS = ("not-installable", "no-gpu", "crash", "wrong-results")


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


def compatible(matrix: VersionMatrix, machine: Machine) -> tuple[Verdict, ...]:
    """Every release of the matrix judged on that machine, the newest first."""
    return tuple(judge(matrix, release, machine) for release in reversed(matrix.releases))


def best(verdicts: Sequence[Verdict]) -> Verdict | None:
    """The newest release that runs, no pre-release; None where none is known to."""
    return next((item for item in verdicts if item.outcome == "runs" and not item.release.prerelease), None)


def judge(matrix: VersionMatrix, release: Release, machine: Machine) -> Verdict:
    """One release on that machine."""
    if machine.platform is not None and machine.platform != matrix.platform:
        text = f"the matrix holds the wheels for {matrix.platform}, and this is {machine.platform}"
        return Verdict(release=release, outcome="unknown", missing=(Reason(rule="platform", text=text),))
    against: list[Reason] = []
    missing: list[Reason] = []
    cautions: list[Reason] = []
    pins = _pins(matrix, release, machine)
    findings: list[tuple[str, Reason]] = [
        *_python_rule(release, machine),
        *_glibc_rule(release, machine),
        *_known_bad_rule(matrix, release, machine, pins),
    ]
    if not machine.for_cpu:
        findings += [
            *_driver_rule(matrix, release, machine),
            *_libraries_rule(release),
            *_gpu_rules(matrix, release, machine, pins),
        ]
    for kind, reason in findings:
        {"against": against, "missing": missing, "caution": cautions}[kind].append(reason)
    outcome: Outcome = "does-not-run" if against else "unknown" if missing else "runs"
    return Verdict(
        release=release,
        outcome=outcome,
        against=tuple(dict.fromkeys(against)),
        missing=tuple(dict.fromkeys(missing)),
        cautions=tuple(dict.fromkeys(cautions)),
        requirements=_requirements(release, machine, pins),
    )


def _python_rule(release: Release, machine: Machine) -> Iterator[tuple[str, Reason]]:
    if machine.python is None:
        yield "missing", Reason(rule="python", text=f"the Python version; it has wheels for {python_words(release)}")
        return
    minor = ".".join(machine.python.split(".")[:2])
    if not specifier(release.python).contains(minor):
        yield "against", Reason(rule="python", text=f"it has wheels for {python_words(release)}, not for {minor}")


def _glibc_rule(release: Release, machine: Machine) -> Iterator[tuple[str, Reason]]:
    if machine.glibc is not None and numbers(machine.glibc) < numbers(release.glibc):
        yield (
            "against",
            Reason(rule="glibc", text=f"its wheel needs glibc {release.glibc}, and here is {machine.glibc}"),
        )


def _driver_rule(matrix: VersionMatrix, release: Release, machine: Machine) -> Iterator[tuple[str, Reason]]:
    least = matrix.oldest_driver(release.cuda)
    if least is None:
        yield "missing", Reason(rule="driver", text=f"the oldest driver for CUDA {release.cuda}")
    elif machine.driver is None:
        yield "missing", Reason(rule="driver", text=f"the driver; CUDA {release.cuda} needs {least} or newer")
    elif numbers(machine.driver) < numbers(least):
        text = f"CUDA {release.cuda} needs driver {least} or newer, not {machine.driver}"
        yield "against", Reason(rule="driver", text=text)


def _libraries_rule(release: Release) -> Iterator[tuple[str, Reason]]:
    if release.and_cuda is None:
        text = f"it has no [and-cuda]: CUDA {release.cuda} and cuDNN {release.cudnn} must be installed on the system"
        yield "caution", Reason(rule="libraries", text=text)


def _gpu_rules(
    matrix: VersionMatrix, release: Release, machine: Machine, pins: Mapping[str, Requirement]
) -> Iterator[tuple[str, Reason]]:
    if machine.gpus is None:
        yield "missing", Reason(rule="gpu", text=f"the GPU; it runs {coverage_words(release)}")
    for name in machine.unnamed_gpus:
        yield "missing", Reason(rule="gpu", text=f"the compute capability of {name}")
    for gpu in _distinct(machine.gpus or ()):
        if gpu.arm_only:
            text = f"{gpu.name} comes with an Arm processor, for which TensorFlow's wheels are built without CUDA"
            yield "against", Reason(rule="platform", text=text)
            continue
        yield from _gpu_driver_rule(matrix, machine, gpu)
        yield from _code_rule(matrix, release, machine, gpu)
        if code_for(release, gpu.capability):
            yield from _cudnn_rule(matrix, release, machine, gpu, pins)


def _distinct(gpus: Sequence[NamedGpu]) -> list[NamedGpu]:
    """One GPU of each capability."""
    return list({(gpu.capability, gpu.arm_only): gpu for gpu in reversed(gpus)}.values())[::-1]


def _gpu_driver_rule(matrix: VersionMatrix, machine: Machine, gpu: NamedGpu) -> Iterator[tuple[str, Reason]]:
    """The driver must know the GPU at all, whatever TensorFlow wants."""
    kind = matrix.capability(gpu.capability)
    if kind is None or machine.driver is None:
        return
    driver = numbers(machine.driver)
    if kind.oldest_driver is not None and driver < numbers(kind.oldest_driver):
        text = f"{gpu.name} ({kind.architecture}) needs driver {kind.oldest_driver} or newer, not {machine.driver}"
        yield "against", Reason(rule="driver", text=text)
    if kind.last_branch is not None and driver[0] > kind.last_branch:
        last = f"branch {kind.last_branch} was the last for {kind.architecture}"
        text = f"driver {machine.driver} no longer supports {gpu.name}: {last}"
        yield "against", Reason(rule="driver", text=text)


def _code_rule(
    matrix: VersionMatrix, release: Release, machine: Machine, gpu: NamedGpu
) -> Iterator[tuple[str, Reason]]:
    code = code_for(release, gpu.capability)
    if code == "machine code":
        return
    if code is None:
        text = (
            f"it holds no code for {gpu.name} (compute capability {gpu.capability}): it runs {coverage_words(release)}"
        )
        yield "against", Reason(rule="gpu", text=text)
        return
    drivers = matrix.ptx_drivers(release.cuda)
    why = f"it holds only PTX for {gpu.name} ({gpu.capability}), made by CUDA {release.cuda}"
    failure = "ptx_newer_than_driver"
    if drivers is None:
        yield "missing", Reason(rule="gpu", text=f"{why}; no driver is known that compiles it", failure=failure)
        return
    surely, perhaps = drivers[1], drivers[0]
    if machine.driver is None:
        yield (
            "missing",
            Reason(rule="driver", text=f"the driver; {why}, which needs {surely} or newer", failure=failure),
        )
    elif numbers(machine.driver) < numbers(perhaps):
        text = f"{why}, which driver {machine.driver} is too old to compile: it needs {surely}"
        yield "against", Reason(rule="driver", text=text, failure=failure)
    elif numbers(machine.driver) < numbers(surely):
        text = f"whether driver {machine.driver} compiles its PTX: {why}, and {surely} surely does"
        yield "missing", Reason(rule="driver", text=text, failure=failure)
    else:
        yield (
            "caution",
            Reason(rule="gpu", text=f"{why}: the driver compiles it at the first start, which may take minutes"),
        )


def code_for(release: Release, capability: str) -> Literal["machine code", "PTX"] | None:
    """By what a GPU of that capability runs a build; None: it holds no code for it."""
    return version_matrix.code_for(release.cubins, release.ptx, capability)


def _cudnn_rule(
    matrix: VersionMatrix, release: Release, machine: Machine, gpu: NamedGpu, pins: Mapping[str, Requirement]
) -> Iterator[tuple[str, Reason]]:
    """The cuDNN that is installed with it must have code for the GPU. A range is judged by what it may resolve to."""
    asked = cudnn_requirement(release)
    by_ptx = code_for(release, gpu.capability) == "PTX"
    if asked is None:
        if by_ptx:
            text = f"whether the system's cuDNN has code for {gpu.name}, which is newer than cuDNN {release.cudnn}"
            yield "missing", Reason(rule="cudnn", text=text)
        return
    requirement = pins.get(asked.name, asked)
    major = numbers(release.cuda)[0]
    rows = [
        row for row in matrix.cudnn if row.cuda == major and overlap(requirement.specifier, specifier(row.versions))
    ]
    if not rows:
        if by_ptx:
            text = f"whether its cuDNN ({requirement.specifier}) has code for {gpu.name} ({gpu.capability})"
            yield "missing", Reason(rule="cudnn", text=text)
        return
    fitting = [row for row in rows if specifier(row.capabilities).contains(gpu.capability)]
    if not fitting:
        said = " or ".join(dict.fromkeys(row.capabilities for row in rows))
        text = f"its cuDNN ({requirement.specifier}) has no code for {gpu.name} ({gpu.capability}): it is for {said}"
        yield "against", Reason(rule="cudnn", text=text)
        return
    drivers = [row.oldest_driver for row in fitting if row.oldest_driver is not None]
    least = min(drivers, key=numbers, default=None)
    if least is None or least == matrix.oldest_driver(release.cuda):
        return  # the driver's own rule says so
    if machine.driver is not None and numbers(machine.driver) < numbers(least):
        text = f"its cuDNN needs driver {least} or newer for {gpu.name}, not {machine.driver}"
        yield "against", Reason(rule="cudnn", text=text)


def _known_bad_rule(
    matrix: VersionMatrix, release: Release, machine: Machine, pins: Mapping[str, Requirement]
) -> Iterator[tuple[str, Reason]]:
    """The combinations that installing this release on this machine ends in, or may end in."""
    for row in matrix.known_bad:
        if machine.for_cpu and ("cudnn" in row.when or "capability" in row.when or row.effect == "no-gpu"):
            continue
        if not may_meet(row, release, machine, pins):
            continue
        text = f"{row.symptom} ({row.fix})"
        if row.job is None and row.effect in _STOPS and _must_meet(row, release, machine, pins):
            if row.effect == "not-installable" and machine.for_cpu:
                continue
            yield "against", Reason(rule="known-bad", text=text, failure=row.id)
        elif row.job is not None and set(row.when) & {"tensorflow", "capability"}:
            yield "caution", Reason(rule="known-bad", text=f"with {row.job}: {text}", failure=row.id)


def _pins(matrix: VersionMatrix, release: Release, machine: Machine) -> dict[str, Requirement]:
    """Requirements, by distribution, that keep the release's ranges from resolving to a known-bad combination.

    Rows are taken in order; one whose combination an earlier pin already excludes adds nothing.
    """
    pins: dict[str, Requirement] = {}
    for row in matrix.known_bad:
        if machine.for_cpu and ("cudnn" in row.when or "capability" in row.when):
            continue
        if row.install and may_meet(row, release, machine, pins):
            for line in row.install:
                requirement = parse_requirement(line)
                pins[requirement.name] = requirement
    return pins


def may_meet(row: KnownBad, release: Release, machine: Machine, pins: Mapping[str, Requirement]) -> bool:
    """Whether an environment of this release on this machine may be in the combination."""
    for name, spec in row.when.items():
        if name == "tensorflow":
            if not specifier(spec).contains(release.version, prereleases=True):
                return False
        elif name == "capability":
            if not any(specifier(spec).contains(gpu.capability) for gpu in machine.gpus or ()):
                return False
        elif name == "python":
            if machine.python is None or not specifier(spec).contains(machine.python):
                return False
        else:
            asked = _asked(name, release, machine)
            if asked is None or not overlap(pins.get(asked.name, asked).specifier, specifier(spec)):
                return False
    return True


def _must_meet(row: KnownBad, release: Release, machine: Machine, pins: Mapping[str, Requirement]) -> bool:
    """Whether it is in the combination whatever is resolved: nothing of it is left to a range."""
    for name in row.when:
        if name in ("tensorflow", "capability", "python"):
            continue
        asked = _asked(name, release, machine)
        wanted = pins.get(asked.name, asked).specifier if asked else ()
        if [item.operator for item in wanted] != ["=="]:
            return False
    return True


def _asked(name: str, release: Release, machine: Machine) -> Requirement | None:
    """What the release asks of a distribution that a combination names; ``cudnn`` is the wheel of its CUDA."""
    if name == "cudnn":
        return cudnn_requirement(release)
    python = ".".join(machine.python.split(".")[:2]) if machine.python else None
    return release.requirement(name, python)


@cache
def overlap(first: SpecifierSet, second: SpecifierSet) -> bool:
    """Whether some version meets both specifiers.

    Only the versions that they name and their neighbours need trying, because nothing changes in between.
    """
    both = (first, second)
    named = [item.version.removesuffix(".*") for each in both for item in each]
    tried = ["0", "99999", *named, *(f"{Version(version).base_version}.0.0.0.1" for version in named)]
    return any(all(each.contains(version, prereleases=True) for each in both) for version in tried)


def _requirements(release: Release, machine: Machine, pins: Mapping[str, Requirement]) -> tuple[str, ...]:
    extra = "[and-cuda]" if release.and_cuda is not None and not machine.for_cpu else ""
    return (f"{release.distribution}{extra}=={release.version}", *(str(pin) for pin in pins.values()))


def python_words(release: Release) -> str:
    """``Python 3.9 to 3.12``."""
    minors = python_minors(release.python)
    return f"Python {minors[0]}" if len(minors) == 1 else f"Python {minors[0]} to {minors[-1]}"


def coverage_words(release: Release) -> str:
    """``compute capability 6.0 to 9.0, and newer ones by PTX``."""
    least, most = release.cubins[0], release.cubins[-1]
    return f"compute capability {least / 10:.1f} to {most / 10:.1f}, and newer ones by PTX"
