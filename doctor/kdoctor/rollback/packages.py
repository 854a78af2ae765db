"""Rollback of a Python environment: its interpreter, and what pip, uv and conda installed in it."""

from collections.abc import Iterable, Iterator, Sequence

from kdoctor.commands.packages import (
    Installer,
    conda_command,
    create_environment,
    minor,
    pip_command,
    verify_conda,
    verify_versions,
)
from kdoctor.engine.report import DriftChange
from kdoctor.facts import canonical_name
from kdoctor.lock.document import Lock
from kdoctor.rollback.document import RollbackStep, step
from kdoctor.rollback.installers import Installation


def pins(lock: Lock) -> list[str]:
    """The recorded distributions as ``name==version``, except those whose version is unknown."""
    return _pins(_versions(lock))


def _versions(lock: Lock, leave_out: Iterable[str] = ()) -> dict[str, str]:
    left_out = set(leave_out)
    return {
        name: version
        for name, version in sorted(lock.facts.get("packages", {}).items())
        if version != "unknown" and name not in left_out
    }


def new_environment(
    changes: Sequence[DriftChange],
    packages: Sequence[DriftChange],
    lock: Lock,
    installation: Installation,
    by_hand: list[str],
) -> RollbackStep | None:
    """A new environment with all packages, if this one cannot be changed back in place.

    That is the case if the minor release of Python changed, or if the recorded environment was conda's and this one is
    not. Conda restores another Python in place, as one of its packages.
    """
    version = next((change for change in changes if change.fact == "python.version"), None)
    was_conda = bool(lock.facts.get("conda"))
    target = installation.target
    lost_conda = was_conda and target is not None and target.environment != "conda"
    by_hand += [
        f"{change.fact} was {change.old} and is now {change.new}: the environment was replaced by one of another kind"
        for change in changes
        if change is not version and not (lost_conda and change.fact == "python.environment")
    ]
    if lost_conda:
        recorded = lock.facts.get("python", {}).get("version", "")
        return _create(changes, packages, lock, installation, recorded)
    if version is None or version.old is None or was_conda:
        return None
    if minor(version.old) == minor(version.new or ""):
        by_hand.append(
            f"python.version was {version.old} and is now {version.new}: the interpreter of "
            f"{installation.prefix or installation.python} was replaced; reinstall that release if nothing else helps"
        )
        return None
    return _create([version], packages, lock, installation, version.old)


def _create(
    changes: Sequence[DriftChange],
    packages: Sequence[DriftChange],
    lock: Lock,
    installation: Installation,
    version: str,
) -> RollbackStep:
    folder = f"{(installation.prefix or 'environment').rstrip('/')}-python{minor(version)}"
    python = f"{folder}/bin/python"
    conda = lock.facts.get("conda", {})
    wanted = _versions(lock, {"pip", *map(canonical_name, conda)})
    installer = "pip" if conda else installation.installer_of()
    if conda:
        create = conda_command("create", folder, *(f"{name}={release}" for name, release in sorted(conda.items())))
    else:
        create = create_environment(installer, version, folder)
    install = pip_command(installer, python, "install", "--no-deps", *_pins(wanted))
    return step(
        f"Create a new environment with Python {minor(version)} next to this one, and run the job in it.",
        [*changes, *packages],
        [create, *([install] if wanted else [])],
        [verify_versions(python, wanted)],
    )


def restore_packages(
    changes: Sequence[DriftChange], conda: Sequence[DriftChange], installation: Installation, by_hand: list[str]
) -> Iterator[RollbackStep]:
    """The packages that drifted, each by the tool that owns it. Conda's own record comes first: it is exact."""
    if conda:
        yield _restore_conda(conda, installation)
    condas = {canonical_name(change.fact.removeprefix("conda.")) for change in conda}
    by_installer: dict[Installer, list[DriftChange]] = {}
    for change in changes:
        name = change.fact.removeprefix("packages.")
        installer = installation.installer_of(name)
        if conda and (installer == "conda" or name in condas):
            continue  # the step above restores it
        if change.old == "unknown":
            by_hand.append(f"{name} is {change.new}, and the lock does not record which version it was")
        else:
            by_installer.setdefault(installer, []).append(change)
    yield from (_restore(installer, found, installation) for installer, found in sorted(by_installer.items()))


def _restore_conda(changes: Sequence[DriftChange], installation: Installation) -> RollbackStep:
    """By name, version and build. The lock has all packages, so conda need not resolve dependencies."""
    wanted, gone = _wanted_and_gone(changes, "conda.")
    specs = [f"{name}={version}" for name, version in wanted.items()]
    prefix = installation.prefix
    return step(
        "Restore the recorded packages with conda.",
        changes,
        [
            *([conda_command("install", prefix, "--no-deps", *specs)] if wanted else []),
            *([conda_command("remove", prefix, "--force", *gone)] if gone else []),
        ],
        verify_conda(prefix, wanted, gone),
    )


def _restore(installer: Installer, changes: Sequence[DriftChange], installation: Installation) -> RollbackStep:
    """Install the recorded versions, then remove the packages that are not recorded.

    The lock has all packages, so pip and uv need not resolve dependencies.
    """
    wanted, gone = _wanted_and_gone(changes, "packages.")
    if installer == "conda":
        specs = [f"{name}={version}" for name, version in wanted.items()]
        install = conda_command("install", installation.prefix, *specs)
        remove = conda_command("remove", installation.prefix, *gone)
    else:
        install = pip_command(installer, installation.python, "install", "--no-deps", *_pins(wanted))
        remove = pip_command(installer, installation.python, "uninstall", *gone)
    return step(
        f"Restore the recorded packages with {installer}.",
        changes,
        [*([install] if wanted else []), *([remove] if gone else [])],
        [verify_versions(installation.python, wanted, gone)],
    )


def _wanted_and_gone(changes: Sequence[DriftChange], section: str) -> tuple[dict[str, str], list[str]]:
    """The versions to install, and the names to remove."""
    old = {change.fact.removeprefix(section): change.old for change in changes}
    wanted = {name: version for name, version in sorted(old.items()) if version is not None}
    return wanted, sorted(old.keys() - wanted)


def _pins(versions: dict[str, str]) -> list[str]:
    return [f"{name}=={version}" for name, version in versions.items()]
