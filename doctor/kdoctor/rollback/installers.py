"""How the environment and the libraries of the machine were installed."""

from kdoctor.commands.packages import Installer, installer_of
from kdoctor.commands.system import Manager, manager_of
from kdoctor.facts import Facts, Host, Libraries, Packages, Target
from kdoctor.records import record


@record
class Installation:
    """What a rollback must know of the machine besides its drift."""

    target: Target | None
    packages: Packages | None
    manager: Manager | None
    """The package manager of the distribution."""
    container: str | None
    """The container engine; None on a bare host. In a container, the kernel and the driver are the host's."""
    outside: frozenset[str]
    """Libraries that the loader finds outside the environment."""

    @property
    def python(self) -> str:
        """The interpreter; that of the search path if the target is unknown."""
        return self.target.executable if self.target else "python3"

    @property
    def prefix(self) -> str:
        """The environment's folder; empty if the target is unknown."""
        return self.target.prefix if self.target else ""

    @property
    def is_stand_in(self) -> bool:
        """Whether it is kdoctor's own environment instead of the job's, so that no step may change its packages."""
        return self.target is not None and self.target.stand_in

    def installer_of(self, *packages: str) -> Installer:
        """The tool that owns these distributions; without names, the one that creates environments here."""
        return installer_of(self.target, self.packages, *packages)


def read_installation(facts: Facts) -> Installation:
    """Read the installation from the facts of a machine."""
    target, packages, host, libraries = (facts.get(group) for group in (Target, Packages, Host, Libraries))
    prefix = f"{target.prefix}/" if isinstance(target, Target) else None
    return Installation(
        target=target if isinstance(target, Target) else None,
        packages=packages if isinstance(packages, Packages) else None,
        manager=manager_of(host.os_release if isinstance(host, Host) else None),
        container=host.container if isinstance(host, Host) and host.container != "none" else None,
        outside=frozenset(
            item.name
            for item in (libraries.libraries if isinstance(libraries, Libraries) else ())
            if item.path and item.package is None and not (prefix and item.path.startswith(prefix))
        ),
    )
