"""From drift to steps. Pure: facts and a lock in, commands out."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kdoctor.facts import Host, Packages, Target
from kdoctor.judge import FactTable
from kdoctor.lock import Lock, Recorded, drift
from kdoctor.lock.facts import WITHHELD
from kdoctor.report_model import DriftChange
from kdoctor.rollback.model import RollbackPlan, RollbackStep

Manager = Literal["apt", "dnf"]

_DERIVED = ("tensorflow.", "scenarios.", "measured.")
"""What follows from other facts, and comes back with them."""
_APT, _DNF = ("debian", "ubuntu"), ("red hat", "rocky", "almalinux", "centos", "fedora", "oracle linux", "amazon linux")


@dataclass(frozen=True, kw_only=True)
class HowMade:
    """How the environment and the machine are kept, as far as the facts tell."""

    python: str
    """The interpreter."""
    environment: Literal["venv", "conda", "system"]
    prefix: str
    installers: Mapping[str, str]
    """Distribution to who installed it: pip, uv, conda."""
    has_pip: bool = True
    manager: Manager | None = None
    """The package manager of the distribution."""
    in_container: bool = False
    """Whether this is a container, whose kernel and driver are the host's."""

    def tool(self, package: str) -> str:
        """Who installs that distribution here."""
        installer = self.installers.get(package, "").lower()
        if installer == "conda" and self.environment == "conda":
            return "conda"
        if installer in ("uv", "pip"):
            return installer
        common = [name for name in self.installers.values() if name in ("uv", "pip")]
        return "uv" if not self.has_pip or common.count("uv") > common.count("pip") else "pip"


def how_made(facts: FactTable) -> HowMade:
    """Read from facts how the environment is kept; where they do not tell, a pip of the search path's Python."""
    target, packages, host = facts.get(Target), facts.get(Packages), facts.get(Host)
    installed = packages.installed if isinstance(packages, Packages) else ()
    return HowMade(
        python=target.executable if isinstance(target, Target) else "python3",
        environment=target.environment if isinstance(target, Target) else "system",
        prefix=target.prefix if isinstance(target, Target) else "",
        installers={package.name: package.installer or "" for package in installed},
        has_pip=packages.has_pip is not False if isinstance(packages, Packages) else True,
        manager=_manager(host.os_release if isinstance(host, Host) else None),
        in_container=isinstance(host, Host) and host.container not in (None, "none"),
    )


def _manager(os_release: str | None) -> Manager | None:
    text = (os_release or "").lower()
    if any(name in text for name in _APT):
        return "apt"
    return "dnf" if any(name in text for name in _DNF) else None


def plan_rollback(lock: Lock, now: Recorded, how: HowMade, shown: str) -> RollbackPlan:
    """The way back from what stands now to the lock, only for what drifted.

    First the packages, which need no root and can be tried at once; then variables; then the driver, which needs root
    and a reboot. Each step is verified by itself.
    """
    found = drift(lock, now, (), shown)
    changes = [change for change in found.changes if not change.fact.startswith(_DERIVED)]
    by_section: dict[str, list[DriftChange]] = {}
    for change in changes:
        by_section.setdefault(change.fact.partition(".")[0], []).append(change)
    by_hand: list[str] = []
    steps = [
        *_python(by_section.get("python", []), lock, how, by_hand),
        *_packages(by_section.get("packages", []), how, by_hand),
        *_environment(by_section, by_hand),
        *_driver(by_section.get("driver", []), lock, how, by_hand),
    ]
    _libraries(by_section, by_hand)
    _hardware(by_section, by_hand)
    return RollbackPlan(
        lock=shown, recorded=lock.recorded, steps=tuple(steps), by_hand=tuple(by_hand), unread=found.unread
    )


def pins(lock: Lock, leave_out: Iterable[str] = ()) -> list[str]:
    """Every distribution of the lock as ``name==version``, but those whose version is not known."""
    left_out = {*leave_out}
    return [
        f"{name}=={version}"
        for name, version in sorted(lock.facts.get("packages", {}).items())
        if version != "unknown" and name not in left_out
    ]


def _restores(changes: Iterable[DriftChange]) -> tuple[str, ...]:
    return tuple(f"{change.fact}: {change.new or 'nothing'} -> {change.old or 'nothing'}" for change in changes)


def _quoted(words: Iterable[str]) -> str:
    return " ".join(shlex.quote(word) for word in words)


def _python(changes: Sequence[DriftChange], lock: Lock, how: HowMade, by_hand: list[str]) -> Iterator[RollbackStep]:
    """Another Python cannot be put under an environment: a new one is made beside it."""
    version = next((change for change in changes if change.fact == "python.version"), None)
    by_hand += [
        f"{change.fact} was {change.old} and is {change.new}: this environment is of another kind"
        for change in changes
        if change is not version
    ]
    if version is None or version.old is None:
        return
    old_minor, new_minor = (".".join((text or "").split(".")[:2]) for text in (version.old, version.new))
    if old_minor == new_minor:
        by_hand.append(
            f"python.version was {version.old} and is {version.new}: the interpreter below {how.prefix or how.python} "
            "was replaced; reinstall that release if nothing else helps"
        )
        return
    folder = f"{(how.prefix or 'environment').rstrip('/')}-python{old_minor}"
    python = f"{folder}/bin/python"
    yield RollbackStep(
        title=f"Make a new environment with Python {old_minor} beside this one, and run the job in it.",
        restores=_restores([version]),
        commands=(
            f"python{old_minor} -m venv {shlex.quote(folder)}",
            f"{shlex.quote(python)} -m pip install --no-deps {_quoted(pins(lock, ['pip']))}",
        ),
        verify=(f"{shlex.quote(python)} -m pip check",),
    )


def _packages(changes: Sequence[DriftChange], how: HowMade, by_hand: list[str]) -> Iterator[RollbackStep]:
    by_tool: dict[str, list[DriftChange]] = {}
    for change in changes:
        name = change.fact.removeprefix("packages.")
        if change.old == "unknown":
            by_hand.append(f"{name} is {change.new}, and the lock does not know which version it was")
        else:
            by_tool.setdefault(how.tool(name), []).append(change)
    for tool in ("conda", "uv", "pip"):
        if tool in by_tool:
            yield _packages_step(tool, by_tool[tool], how)


def _packages_step(tool: str, changes: Sequence[DriftChange], how: HowMade) -> RollbackStep:
    """Install the recorded versions, then take away what came since.

    Dependencies are left alone: the lock lists every distribution, so nothing has to be resolved.
    """
    names = [change.fact.removeprefix("packages.") for change in changes]
    wanted = {name: change.old for name, change in zip(names, changes, strict=True) if change.old is not None}
    gone = [name for name, change in zip(names, changes, strict=True) if change.old is None]
    python = shlex.quote(how.python)
    if tool == "conda":
        prefix = f"--prefix {shlex.quote(how.prefix)}"
        specs = _quoted(f"{name}={version}" for name, version in sorted(wanted.items()))
        install, remove = (
            f"conda install --yes {prefix} {specs}",
            f"conda remove --yes {prefix} {_quoted(sorted(gone))}",
        )
    else:
        specs = _quoted(f"{name}=={version}" for name, version in sorted(wanted.items()))
        if tool == "uv":
            install = f"uv pip install --python {python} --no-deps {specs}"
            remove = f"uv pip uninstall --python {python} {_quoted(sorted(gone))}"
        else:
            install = f"{python} -m pip install --no-deps {specs}"
            remove = f"{python} -m pip uninstall --yes {_quoted(sorted(gone))}"
    return RollbackStep(
        title=f"Bring back the recorded packages with {tool}.",
        restores=_restores(changes),
        commands=(*([install] if wanted else []), *([remove] if gone else [])),
        verify=(f"{python} -c {shlex.quote(_question(wanted, gone))}",),
    )


def _question(wanted: Mapping[str, str | None], gone: Iterable[str]) -> str:
    """A program that exits with 0 where exactly these versions are installed, and says what is not so."""
    return "; ".join((
        "import importlib.metadata as m",
        f"wanted, gone = {json.dumps(wanted, sort_keys=True)}, {json.dumps(sorted(gone))}",
        'have = {d.metadata["Name"].lower().replace("_", "-").replace(".", "-"): d.version for d in m.distributions()}',
        'wrong = [f"{n} is {have.get(n)}, not {v}" for n, v in wanted.items() if have.get(n) != v]',
        'wrong += [f"{n} is still installed" for n in gone if n in have]',
        'raise SystemExit("; ".join(wrong) or 0)',
    ))  # fmt: skip


def _environment(by_section: Mapping[str, Sequence[DriftChange]], by_hand: list[str]) -> Iterator[RollbackStep]:
    commands: list[str] = []
    verify: list[str] = []
    restored: list[DriftChange] = []
    changes = by_section.get("environment", [])
    for change in changes:
        name = change.fact.removeprefix("environment.")
        if change.old == WITHHELD:
            now = change.new or "not set"
            by_hand.append(f"{name} was set, and is {now}: its value was withheld from the lock (--with-identifiers)")
        elif change.old is None:
            commands.append(f"unset {name}")
            verify.append(f'test -z "${{{name}+set}}"')
            restored.append(change)
        else:
            commands.append(f"export {name}={shlex.quote(change.old)}")
            verify.append(f'test "${name}" = {shlex.quote(change.old)}')
            restored.append(change)
    named = {change.fact for change in changes}
    for change in by_section.get("keras", []):
        if change.fact == "keras.backend" and change.old and "environment.KERAS_BACKEND" not in named:
            commands.append(f"export KERAS_BACKEND={shlex.quote(change.old)}")
            verify.append(f'test "$KERAS_BACKEND" = {shlex.quote(change.old)}')
            restored.append(change)
    if commands:
        yield RollbackStep(
            title="Set and unset the variables as they were, here and wherever the job gets them from.",
            restores=_restores(restored),
            commands=tuple(commands),
            verify=tuple(verify),
            in_shell=True,
        )


def _driver(changes: Sequence[DriftChange], lock: Lock, how: HowMade, by_hand: list[str]) -> Iterator[RollbackStep]:
    told = [change for change in changes if change.fact in ("driver.version", "driver.module", "driver.flavour")]
    recorded = lock.facts.get("driver", {})
    version = recorded.get("version") or recorded.get("module")
    if not told:
        return
    if version is None or not re.fullmatch(r"\d+(\.\d+)+", version):
        by_hand.append(f"the driver: {'; '.join(_restores(told))}: no version is on record")
        return
    if how.in_container:
        by_hand.append(f"the driver ({'; '.join(_restores(told))}): it is the host's, and this is a container")
        return
    commands = _driver_commands(version, recorded.get("flavour"), how.manager)
    if not commands:
        by_hand.append(
            f"the driver ({'; '.join(_restores(told))}): install {version} the way this system gets its driver"
        )
        return
    yield RollbackStep(
        title=f"Install the driver {version} again, when no job runs, and restart the machine.",
        restores=_restores(changes),
        commands=(*commands, "sudo systemctl reboot"),
        verify=(
            f"grep -F {version} /proc/driver/nvidia/version",
            f"nvidia-smi --query-gpu=driver_version --format=csv,noheader | grep -F {version}",
        ),
        needs_root=True,
        needs_reboot=True,
    )


def _driver_commands(version: str, flavour: str | None, manager: Manager | None) -> tuple[str, ...]:
    """By the names of NVIDIA's repositories and Ubuntu's (https://docs.nvidia.com/datacenter/tesla/driver-installation-guide/)."""
    branch = version.partition(".")[0]
    if manager == "apt":
        package = f"nvidia-driver-{branch}{'-open' if flavour == 'open' else ''}"
        return (
            f"apt-cache madison {package}",
            f"sudo apt-get install --allow-downgrades {shlex.quote(f'{package}={version}*')}",
        )
    if manager == "dnf":
        kernel = "kmod-nvidia-open-dkms" if flavour == "open" else "kmod-nvidia-latest-dkms"
        return (f"sudo dnf downgrade {shlex.quote(f'nvidia-driver*-{version}')} {shlex.quote(f'{kernel}-{version}')}",)
    return ()


def _libraries(by_section: Mapping[str, Sequence[DriftChange]], by_hand: list[str]) -> None:
    """Libraries that come with packages come back with them; others are the system's."""
    comes_back = any(change.fact.startswith("packages.nvidia-") for change in by_section.get("packages", []))
    changes = [change for change in by_section.get("libraries", []) if not change.fact.endswith((".path", ".found-by"))]
    if changes and not comes_back:
        by_hand.append(f"libraries outside the environment: {'; '.join(_restores(changes))}")


def _hardware(by_section: Mapping[str, Sequence[DriftChange]], by_hand: list[str]) -> None:
    reasons = {
        "gpus": "the GPUs are others or fewer: no command brings a GPU back",
        "topology": "the ways between the GPUs are others: look at slots, switches and the BIOS",
        "host": "the system was changed: boot the recorded kernel, or restore the image of the machine",
    }
    for section, reason in reasons.items():
        changes = by_section.get(section, [])
        if changes:
            by_hand.append(f"{reason} ({'; '.join(_restores(changes))})")
