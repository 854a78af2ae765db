"""How the environment and the machine are kept, as far as the facts tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from kdoctor.engine.judge import FactTable
from kdoctor.facts import Host, Libraries, Packages, Target

Manager = Literal["apt", "dnf"]
Tool = Literal["conda", "uv", "pip"]

_APT, _DNF = ("debian", "ubuntu"), ("red hat", "rocky", "almalinux", "centos", "fedora", "oracle linux", "amazon linux")


@dataclass(frozen=True, kw_only=True)
class HowMade:
    """Who keeps what."""

    python: str
    """The interpreter."""
    environment: Literal["venv", "conda", "system"]
    prefix: str
    installers: Mapping[str, str]
    """Distribution to who installed it: pip, uv, conda."""
    has_pip: bool = True
    manager: Manager | None = None
    """The package manager of the distribution."""
    container: str | None = None
    """The container engine; None on a bare host. In a container the kernel and the driver are the host's."""
    outside: frozenset[str] = field(default_factory=frozenset)
    """Libraries that the loader takes from outside the environment."""

    def tool(self, package: str) -> Tool:
        """Who installs that distribution here."""
        installer = self.installers.get(package, "").lower()
        if installer == "conda" and self.environment == "conda":
            return "conda"
        if installer == "uv":
            return "uv"
        return "pip" if installer == "pip" else self.common_tool

    @property
    def common_tool(self) -> Literal["uv", "pip"]:
        """Who installs most here."""
        common = [name for name in self.installers.values() if name in ("uv", "pip")]
        return "uv" if not self.has_pip or common.count("uv") > common.count("pip") else "pip"


def how_made(facts: FactTable) -> HowMade:
    """Read from facts how the environment is kept; where they do not tell, a pip of the search path's Python."""
    target, packages, host = facts.get(Target), facts.get(Packages), facts.get(Host)
    installed = packages.installed if isinstance(packages, Packages) else ()
    prefix = target.prefix if isinstance(target, Target) else ""
    return HowMade(
        python=target.executable if isinstance(target, Target) else "python3",
        environment=target.environment if isinstance(target, Target) else "system",
        prefix=prefix,
        installers={package.name: package.installer or "" for package in installed},
        has_pip=packages.has_pip is not False if isinstance(packages, Packages) else True,
        manager=_manager(host.os_release if isinstance(host, Host) else None),
        container=host.container if isinstance(host, Host) and host.container != "none" else None,
        outside=frozenset(_outside(facts.get(Libraries), prefix)),
    )


def _manager(os_release: str | None) -> Manager | None:
    text = (os_release or "").lower()
    if any(name in text for name in _APT):
        return "apt"
    return "dnf" if any(name in text for name in _DNF) else None


def _outside(libraries: object, prefix: str) -> list[str]:
    if not isinstance(libraries, Libraries):
        return []
    return [
        item.name
        for item in libraries.libraries
        if item.path and item.package is None and not (prefix and item.path.startswith(f"{prefix}/"))
    ]
