"""The requirements of installed distributions, evaluated for the target interpreter."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

from kdoctor.commands.markers import applicable, marker_environment
from kdoctor.commands.packages import install, narrowest, restore, tf_keras_for
from kdoctor.facts import TENSORFLOWS, Packages, Target
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Rollback, Unjudged
from kdoctor.records import record
from kdoctor.text.lists import counted, some
from kdoctor_checks._versions import first_short, meets, parse_version


@record
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
        requirements, invalid = applicable(package, markers, extras)
        needs.unjudged += [Unjudged(subject=package.name, reason=reason) for reason in invalid]
        for requirement in requirements:
            wanted = _provided(canonicalize_name(requirement.name), packages)
            need = Need(by=f"{package.name} {package.version}", requirement=requirement)
            if need not in (known := needs.by_name.setdefault(wanted, [])):
                known.append(need)
            queue.append((wanted, frozenset(requirement.extras)))
    return needs


def _provided(name: str, packages: Packages) -> str:
    """The installed distribution that has the files of that name: ``tensorflow-cpu`` for ``tensorflow``."""
    installed = packages.tensorflow if name == "tensorflow" else None
    return installed.name if installed else name


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
    kept: Collection[str] = (),
) -> Iterator[Outcome]:
    """A finding for each distribution that does not meet all requirements; evidence if there is none.

    Args:
        needs: the requirements to judge.
        packages: the installed distributions.
        target: the interpreter that they are installed for.
        subject: what the evidence is about.
        count: number of distributions that have these requirements.
        explained_by: name of a required distribution to the checks that may explain its finding.
        kept: distributions that the job needs as they are, so that the fix changes what requires them.
    """
    yield from needs.unjudged
    bad = {name: found for name in sorted(needs.by_name) if (found := _judge(name, needs, packages, target, kept))}
    free = [name for name, found in bad.items() if isinstance(found, Finding) and name not in {*explained_by, *kept}]
    for name, found in bad.items():
        if not isinstance(found, Finding):
            yield found
            continue
        known = (*found.explained_by, *explained_by.get(name, ()))
        remedy, rollback = _install(free, needs, packages, target) if name in free else (found.remedy, found.rollback)
        yield replace(found, explained_by=known, remedy=remedy, rollback=rollback)
    if not bad:
        requirements, owners = counted(needs.count, "requirement"), counted(count, "distribution")
        yield Evidence(subject=subject, observed=f"{requirements} of {owners} met")


def _judge(
    name: str, needs: Needs, packages: Packages, target: Target, kept: Collection[str]
) -> Finding | Unjudged | None:
    """The outcome for a required distribution; None if it meets all requirements."""
    package, wanted = packages.find(name), needs.by_name[name]
    specifiers = _specifiers(wanted)
    if package and not specifiers:
        return None  # any version meets them, even an invalid one
    version = parse_version(package.version) if package else None
    if package and version is None:
        invalid = f"version {package.version!r} is not valid (PEP 440)"
        reason = invalid if package.version else "its metadata has no version"
        return Unjudged(subject=name, reason=reason, explained_by=("versions.packages-intact",))
    unmet = unmet_needs(name, needs, packages)
    if not unmet:
        return None
    owners = tuple(dict.fromkeys(need.by.partition(" ")[0] for need in unmet))
    texts = [f"{need.by} needs {narrowest(need.requirement.specifier) or 'it'}" for need in unmet]
    problem = "" if package else "not installed, but "
    last = "does not meet the requirements of other packages" if package else "not installed, but required"
    remedy, rollback = _install([name], needs, packages, target)
    if package and name in kept:
        remedy, rollback = _other_owners(name, owners, packages, target), restore(target, packages, *owners)
    return Finding(
        subject=f"{name} {package.version}" if package else name,
        observed=problem + ", ".join(texts),
        brief=first_short(problem + ", ".join(texts), problem + texts[0], last),
        expected=", ".join(f"{need.requirement.name}{need.requirement.specifier} (for {need.by})" for need in unmet),
        remedy=remedy,
        rollback=rollback,
        explained_by=(
            *(("versions.one-tensorflow",) if TENSORFLOWS.issuperset(owners) else ()),
            *("versions.packages-intact" for fault in packages.faults if fault.shadowed and fault.package == name),
        ),
    )


def _install(names: Sequence[str], needs: Needs, packages: Packages, target: Target) -> tuple[Remedy, Rollback]:
    """One command for all: pip resolves packages that are installed together, and not one after the other."""
    wanted = [f"{name}{narrowest(_specifiers(needs.by_name[name]))}" for name in names]
    remedy = Remedy.reinstall(
        f"Install {some(names)} in versions that meet all requirements. If there are none, change what requires them.",
        install(target, packages, *wanted),
    )
    return remedy, restore(target, packages, *names)


def _specifiers(wanted: Iterable[Need]) -> SpecifierSet:
    return SpecifierSet(",".join(str(need.requirement.specifier) for need in wanted))


def _other_owners(name: str, owners: Sequence[str], packages: Packages, target: Target) -> Remedy:
    """Change what requires another version of a package that the job needs as it is."""
    version = packages.version(name) or ""
    wanted = [tf_keras_for(version) if owner == "tf-keras" else owner for owner in owners]
    return Remedy.reinstall(
        f"Install versions of {some(owners)} for {name} {version}. If there is none, uninstall what the "
        "job does not import.",
        install(target, packages, "--upgrade", *wanted, f"{name}=={version}"),
    )
