from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.shell import quoted
from kdoctor.facts import Environment, Unavailable
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Severity, Unjudged
from kdoctor_fleet.checks.network._hosts import BY_HAND, network_of, not_several, subject, tasks
from kdoctor_fleet.facts import JobHost, JobHosts

_RESOLVE = ("network.hosts-resolve",)


@check("network.hosts-reachable", severity=Severity.ERROR)
def hosts_reachable(hosts: JobHosts | Unavailable, environment: Environment | Unavailable) -> Iterator[Outcome]:
    """Every other host in TF_CONFIG answers on its port.

    Why: workers connect to each other's ports, and wait without an error for one that does not answer. Before the job,
    no program listens there: a refused connection shows that the host answers and that no firewall drops the packets.
    No answer is an error, because the job would hang. Machines that are still starting fail, too: check again then.
    Remedy: open the port between the machines, or correct TF_CONFIG.
    Sources:
        https://man7.org/linux/man-pages/man2/connect.2.html
        https://www.tensorflow.org/tutorials/distribute/multi_worker_with_keras
    """
    yield from not_several(hosts, environment)
    others = [host for host in tasks(hosts) if not host.own]
    if tasks(hosts) and not others:
        yield NotApplicable(reason="TF_CONFIG names no other task")
    for host in others:
        if host.state == "connected":
            yield Evidence(subject=subject(host), observed="a program listens on its port", brief="hosts answer")
        elif host.state == "refused":
            yield Evidence(subject=subject(host), observed="the host answers, its port is free", brief="hosts answer")
        elif host.state is None:
            reason = "it has no address" if host.resolved is False else "the connection was not tried or did not end"
            yield Unjudged(subject=subject(host), reason=reason, explained_by=_RESOLVE)
        else:
            yield _finding(host)


def _finding(host: JobHost) -> Finding:
    target = f"{quoted(host.host)} {host.port}"
    return Finding(
        subject=subject(host),
        observed=f"cannot be reached ({host.error or host.state})",
        brief="does not answer" if host.state == "timed-out" else "cannot be reached",
        expected="an answer from its port, or a refused connection",
        remedy=network_of(
            "Open the port between the machines, start the machine, or correct TF_CONFIG.",
            f"nc -vz -w 5 {target}",
            "sudo nft list ruleset",
        ),
        rollback=BY_HAND,
        explained_by=_RESOLVE,
    )
