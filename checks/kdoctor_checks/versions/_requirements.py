"""The requirements of installed distributions, evaluated for the target interpreter."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import cast

from packaging.markers import Environment as MarkerEnvironment
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from kdoctor.commands.packages import install, restore
from kdoctor.facts import Package, Packages, Target
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Unjudged
from kdoctor.text.lists import counted
from kdoctor_checks._versions import first_short, meets, narrowest, parse_version

_SYSTEMS = {
    "linux": ("linux", "Linux", "posix"),
    "macosx": ("darwin", "Darwin", "posix"),
    "win": ("win32", "Windows", "nt"),
}
_IMPLEMENTATIONS = {"cpython": "CPython", "pypy": "PyPy"}


@dataclass(frozen=True, kw_only=True)
class Need:
    """One requirement of an installed distribution."""

    by: str
    """Name and version of the distribution that has the requirement."""
    requirement: Requirement


@dataclass(kw_only=True)
class Needs:
    """The requirements of some distributions, and those that could not be read."""

    by_name: dict[str, list[Need]] = field(default_factory=dict)
    """Normalized name of a distribution to the requirements of it."""
    visited: set[str] = field(default_factory=set)
    """The installed distributions whose requirements were read."""
    unjudged: list[Unjudged] = field(default_factory=list)

    @property
    def count(self) -> int:
        """Number of requirements."""
        return sum(len(needs) for needs in self.by_name.values())


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


def needs_of(roots: Iterable[str], packages: Packages, target: Target) -> Needs:
    """All direct and indirect requirements of the installed roots, with the requested extras."""
    markers = marker_environment(target)
    needs = Needs()
    queue: list[tuple[str, frozenset[str]]] = [(canonicalize_name(root), frozenset()) for root in roots]
    seen: set[tuple[str, frozenset[str]]] = set()
    while queue:
        name, extras = queue.pop()
        package = packages.find(name)
        if package is None or (name, extras) in seen:
            continue
        seen.add((name, extras))
        needs.visited.add(name)
        for requirement in _applicable(package, extras, markers, needs):
            wanted = canonicalize_name(requirement.name)
            need = Need(by=f"{package.name} {package.version}", requirement=requirement)
            if need not in (known := needs.by_name.setdefault(wanted, [])):
                known.append(need)
            queue.append((wanted, frozenset(requirement.extras)))
    return needs


@cache
def _parsed(line: str) -> Requirement:
    return Requirement(line)


def _applicable(
    package: Package, extras: frozenset[str], markers: MarkerEnvironment, needs: Needs
) -> Iterator[Requirement]:
    """The package's requirements whose marker holds in the target, without an extra or with a requested one."""
    for line in package.requires:
        try:
            requirement = _parsed(line)
        except InvalidRequirement as error:
            reason = f"invalid requirement {line!r}: {str(error).splitlines()[0]}"
            needs.unjudged.append(Unjudged(subject=package.name, reason=reason))
            continue
        marker = requirement.marker
        if marker is None or any(
            marker.evaluate(cast("dict[str, str]", {**markers, "extra": extra})) for extra in ("", *sorted(extras))
        ):
            yield requirement


def unmet_needs(name: str, needs: Needs, packages: Packages) -> list[Need]:
    """The requirements that an installed distribution does not meet, or all if it is missing or has no version."""
    version = parse_version(packages.version(name))
    return [need for need in needs.by_name[name] if version is None or not meets(version, need.requirement.specifier)]


def judge_needs(
    needs: Needs,
    packages: Packages,
    target: Target,
    *,
    subject: str,
    count: int,
    explained_by: Mapping[str, tuple[str, ...]],
) -> Iterator[Outcome]:
    """A finding for each distribution that does not meet all requirements; evidence if there is none.

    Args:
        needs: the requirements to judge.
        packages: the installed distributions.
        target: the interpreter that they are installed for.
        subject: what the evidence is about.
        count: number of distributions that have these requirements.
        explained_by: name of a required distribution to the checks that may explain its finding.
    """
    yield from needs.unjudged
    bad = [outcome for name in sorted(needs.by_name) if (outcome := _judge(name, needs, packages, target))]
    for outcome in bad:
        known = explained_by.get(canonicalize_name(outcome.subject.partition(" ")[0]), ())
        yield replace(outcome, explained_by=known) if isinstance(outcome, Finding) else outcome
    if not bad:
        requirements, owners = counted(needs.count, "requirement"), counted(count, "distribution")
        yield Evidence(subject=subject, observed=f"{requirements} of {owners} met")


def _judge(name: str, needs: Needs, packages: Packages, target: Target) -> Finding | Unjudged | None:
    """The outcome for a required distribution; None if it meets all requirements."""
    package, wanted = packages.find(name), needs.by_name[name]
    specifiers = SpecifierSet(",".join(str(need.requirement.specifier) for need in wanted))
    if package and not specifiers:
        return None  # any version meets them, even an invalid one
    version = parse_version(package.version) if package else None
    if package and version is None:
        invalid = f"version {package.version!r} is not valid (PEP 440)"
        return Unjudged(subject=name, reason=invalid if package.version else "its metadata has no version")
    unmet = unmet_needs(name, needs, packages)
    if not unmet:
        return None
    texts = [f"{need.by} needs {narrowest(need.requirement.specifier) or 'it'}" for need in unmet]
    problem = "" if package else "not installed, but "
    last = "does not meet the requirements of other packages" if package else "not installed, but required"
    return Finding(
        subject=f"{name} {package.version}" if package else name,
        observed=problem + ", ".join(texts),
        brief=first_short(problem + ", ".join(texts), problem + texts[0], last),
        expected=", ".join(f"{need.requirement.name}{need.requirement.specifier} (for {need.by})" for need in unmet),
        remedy=Remedy.reinstall(
            f"Install a version of {name} that meets all requirements. If there is none, change the version of "
            "a package that requires it.",
            install(target, packages, f"{name}{narrowest(specifiers)}"),
        ),
        rollback=restore(target, packages, name),
    )
