"""Environment markers of requirements (PEP 508), evaluated for the target interpreter."""

from collections.abc import Iterable
from functools import cache
from typing import cast

from packaging.markers import Environment as MarkerEnvironment
from packaging.requirements import InvalidRequirement, Requirement

from kdoctor.facts import Package, Target

_SYSTEMS = {
    "linux": ("linux", "Linux", "posix"),
    "macosx": ("darwin", "Darwin", "posix"),
    "win": ("win32", "Windows", "nt"),
}
_IMPLEMENTATIONS = {"cpython": "CPython", "pypy": "PyPy"}


def marker_environment(target: Target) -> MarkerEnvironment:
    """The values of environment markers (PEP 508) for the target interpreter.

    ``platform_release`` and ``platform_version`` are not in the facts. They are empty, because the kernel of the
    machine that runs kdoctor may be a different one.
    """
    system, _, machine = target.platform.partition("-")
    sys_platform, platform_system, os_name = _SYSTEMS.get(system, (system, system.capitalize(), "posix"))
    implementation = _IMPLEMENTATIONS.get(target.implementation, target.implementation)
    values = {
        "implementation_name": target.implementation,
        "implementation_version": target.version,
        "os_name": os_name,
        "platform_machine": _machine(system, machine),
        "platform_python_implementation": implementation,
        "platform_release": "",
        "platform_system": platform_system,
        "platform_version": "",
        "python_full_version": target.version,
        "python_version": ".".join(target.version.split(".")[:2]),
        "sys_platform": sys_platform,
        "extra": "",
    }
    return cast("MarkerEnvironment", values)


def _machine(system: str, rest: str) -> str:
    """The machine in ``linux-x86_64``, ``macosx-14.0-arm64`` or ``win-amd64``, as ``platform.machine()`` spells it."""
    machine = rest.rpartition("-")[2]
    return machine.upper() if system == "win" else machine


@cache
def _parsed(line: str) -> Requirement:
    return Requirement(line)


@cache
def _holds(line: str, extra: str, markers: frozenset[tuple[str, str]]) -> bool:
    """Whether the marker of a requirement holds. Several checks ask the same of hundreds of requirements."""
    marker = _parsed(line).marker
    return marker is None or marker.evaluate({**dict(markers), "extra": extra})


def applicable(
    package: Package, markers: MarkerEnvironment, extras: Iterable[str] = ()
) -> tuple[list[Requirement], list[str]]:
    """The package's requirements whose marker holds, without an extra or with a requested one.

    Returns:
        These, and why other lines are invalid.
    """
    values = frozenset(cast("dict[str, str]", markers).items())
    found: list[Requirement] = []
    invalid: list[str] = []
    for line in package.requires:
        try:
            requirement = _parsed(line)
        except InvalidRequirement as error:
            invalid.append(f"invalid requirement {line!r}: {str(error).splitlines()[0]}")
            continue
        if any(_holds(line, extra, values) for extra in ("", *sorted(extras))):
            found.append(requirement)
    return found, invalid
