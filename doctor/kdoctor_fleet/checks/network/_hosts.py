"""Shared by checks of the hosts in TF_CONFIG."""

from collections.abc import Iterator

from kdoctor.facts import Environment, Unavailable
from kdoctor.model import NotApplicable, Outcome, Remedy, Rollback, Unjudged
from kdoctor_fleet.facts import JobHost, JobHosts

VARIABLE = "TF_CONFIG"
_ONE_MACHINE = NotApplicable(reason="TF_CONFIG names no other machine: the job runs on this one")


def subject(host: JobHost) -> str:
    """The task's name in reports, with its address as in TF_CONFIG."""
    return f"{host.task} ({host.host}{f':{host.port}' if host.port is not None else ''})"


def tasks(hosts: JobHosts | Unavailable) -> tuple[JobHost, ...]:
    """The tasks of a job over several machines; empty if there are none, or if they are unknown."""
    return hosts.hosts if isinstance(hosts, JobHosts) and len(hosts.hosts) > 1 else ()


def not_several(hosts: JobHosts | Unavailable, environment: Environment | Unavailable) -> Iterator[Outcome]:
    """Why the hosts of the job cannot be judged; nothing if there are several."""
    if isinstance(hosts, JobHosts) and hosts.malformed:
        yield Unjudged(subject=VARIABLE, reason=hosts.malformed, explained_by=("network.hosts-resolve",))
    elif tasks(hosts):
        return
    elif isinstance(hosts, JobHosts) or (isinstance(environment, Environment) and environment.is_unset(VARIABLE)):
        yield _ONE_MACHINE
    else:
        yield Unjudged(subject=VARIABLE, reason=hosts.unavailable)


def network_of(summary: str, *look: str) -> Remedy:
    """A fix in the network or in its configuration."""
    return Remedy.configure(summary, look=look)


BY_HAND = Rollback.irreversible("depends on what was changed in the network")
