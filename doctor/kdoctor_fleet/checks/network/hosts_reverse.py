from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Environment, Unavailable
from kdoctor.model import Evidence, Finding, Outcome, Severity, Unjudged
from kdoctor_fleet.checks.network._hosts import BY_HAND, network_of, not_several, subject, tasks
from kdoctor_fleet.facts import JobHosts


@check("network.hosts-reverse", severity=Severity.INFO)
def hosts_reverse(hosts: JobHosts | Unavailable, environment: Environment | Unavailable) -> Iterator[Outcome]:
    """The addresses of the hosts in TF_CONFIG have names that lead back to them.

    Why: TensorFlow does not need it, but launchers such as mpirun, Kerberos and some storage clients do, and a name
    that leads to another address shows that two entries of the name server contradict each other. For information.
    Remedy: correct the reverse entry in the name server.
    Source: https://man7.org/linux/man-pages/man3/gethostbyaddr.3.html
    """
    yield from not_several(hosts, environment)
    for host in tasks(hosts):
        if not host.resolved or host.resolves_back is None:
            reason = "it has no address" if host.resolved is False else "the name server did not answer"
            yield Unjudged(subject=subject(host), reason=reason, explained_by=("network.hosts-resolve",))
        elif host.resolves_back:
            yield Evidence(subject=subject(host), observed="its address has a name that leads back to it")
        else:
            yield Finding(
                subject=subject(host),
                observed="its address has no name, or one that leads to another address",
                expected="a name that leads back to the address",
                remedy=network_of("Correct the reverse entry in the name server.", "cat /etc/resolv.conf"),
                rollback=BY_HAND,
            )
