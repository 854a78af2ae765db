"""Finds the known-bad combinations that installing a release may lead to, and the pins that prevent them."""

from collections.abc import Iterator, Mapping
from functools import cache

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.version import Version

from kdoctor.matrix.model import KnownBad, Release, VersionMatrix, cudnn_requirement
from kdoctor.matrix.values import meets, parse_requirement, specifier
from kdoctor.matrix.verdict import Machine, Reason

_STOPS = ("not-installable", "no-gpu", "crash", "wrong-results")


def known_bad_rule(
    matrix: VersionMatrix, release: Release, machine: Machine, pins: Mapping[str, Requirement]
) -> Iterator[Reason]:
    """The combinations that installing this release on this machine leads to, or may lead to."""
    for row in matrix.known_bad:
        if row.extra_only or (
            machine.for_cpu and ("cudnn" in row.when or "capability" in row.when or row.effect == "no-gpu")
        ):
            continue
        if not may_meet(row, release, machine, pins):
            continue
        text = f"{row.symptom}; fix: {row.fix}"
        if row.job is None and row.effect in _STOPS and _must_meet(row, release, machine, pins):
            yield Reason("against", "known-bad", text, failure=row.id)
        elif row.job is not None and row.effect != "no-gpu" and set(row.when) & {"tensorflow", "capability"}:
            # A release that finds no GPU in some environments is printed with the command that prevents it.
            yield Reason("caution", "known-bad", f"with {row.job}: {text}", failure=row.id)


def broken_extra(matrix: VersionMatrix, release: Release, machine: Machine) -> KnownBad | None:
    """Why the extra with the NVIDIA wheels cannot be installed; None if it can, or is not needed."""
    if machine.for_cpu or machine.system_libraries:
        return None
    return next((row for row in matrix.known_bad if row.extra_only and may_meet(row, release, machine, {})), None)


def pins_for(matrix: VersionMatrix, release: Release, machine: Machine) -> dict[str, Requirement]:
    """Requirements by distribution that prevent the release's ranges from resolving to a known-bad combination.

    Rows apply in order; a row that an earlier pin already excludes adds nothing.
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
    """Whether an environment with this release on this machine may match the combination."""
    for name, spec in row.when.items():
        if name == "tensorflow":
            if release.distribution == "jax" or not meets(release.version, spec, prereleases=True):
                return False
        elif name == "capability":
            if not any(meets(gpu.capability, spec) for gpu in machine.gpus or ()):
                return False
        elif name == "python":
            if machine.python is None or not meets(machine.python, spec):
                return False
        else:
            asked = _asked(name, release, machine)
            if asked is None or not overlap(pins.get(asked.name, asked).specifier, specifier(spec)):
                return False
    return True


def _must_meet(row: KnownBad, release: Release, machine: Machine, pins: Mapping[str, Requirement]) -> bool:
    """Whether it matches the combination however its requirements resolve."""
    for name in row.when:
        if name in ("tensorflow", "capability", "python"):
            continue
        asked = _asked(name, release, machine)
        wanted = pins.get(asked.name, asked).specifier if asked else ()
        if [item.operator for item in wanted] != ["=="]:
            return False
    return True


def _asked(name: str, release: Release, machine: Machine) -> Requirement | None:
    """What the release requires of a distribution in a combination; ``cudnn`` is the wheel for its CUDA."""
    if name == "cudnn":
        return cudnn_requirement(release)
    python = ".".join(machine.python.split(".")[:2]) if machine.python else None
    return release.requirement(name, python)


@cache
def overlap(first: SpecifierSet, second: SpecifierSet) -> bool:
    """Whether some version matches both specifiers.

    Only the versions in the specifiers and their neighbours are tried, because nothing changes in between.
    """
    both = (first, second)
    named = [item.version.removesuffix(".*") for each in both for item in each]
    tried = ["0", "99999", *named, *(f"{Version(version).base_version}.0.0.0.1" for version in named)]
    return any(all(each.contains(version, prereleases=True) for each in both) for version in tried)
