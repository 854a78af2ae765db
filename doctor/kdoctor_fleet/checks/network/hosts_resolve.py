from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.shell import quoted
from kdoctor.facts import Environment, Unavailable
from kdoctor.model import Evidence, Finding, Outcome, Remedy, Rollback, Severity, Unjudged
from kdoctor_fleet.checks.network._hosts import BY_HAND, VARIABLE, network_of, not_several, subject, tasks
from kdoctor_fleet.facts import JobHosts


@check("network.hosts-resolve", severity=Severity.ERROR)
def hosts_resolve(hosts: JobHosts | Unavailable, environment: Environment | Unavailable) -> Iterator[Outcome]:
    """Every host in TF_CONFIG has an address.

    Why: a strategy reads TF_CONFIG when it is made, and a worker waits for all others before its first step. A name
    without an address makes every worker wait without an error until it is ended. An error, because the job does not
    start.
    Remedy: correct the name in TF_CONFIG, or add it to the name server or to /etc/hosts.
    Sources:
        https://www.tensorflow.org/guide/distributed_training#setting_up_the_tf_config_environment_variable
        https://man7.org/linux/man-pages/man3/getaddrinfo.3.html
    """
    if isinstance(hosts, JobHosts) and hosts.malformed:
        yield Finding(
            subject=VARIABLE,
            observed=f"cannot be read: {hosts.malformed}",
            expected="a cluster and a task, as JSON; or unset, for a job on one machine",
            remedy=Remedy.configure("Correct it, or unset it for a job on one machine:", f"unset {VARIABLE}"),
            rollback=Rollback.nothing("only the environment of the job changes"),
        )
        return
    yield from not_several(hosts, environment)
    for host in tasks(hosts):
        if host.resolved is None:
            yield Unjudged(subject=subject(host), reason="the name server did not answer in time")
        elif host.port is None:
            yield Finding(
                subject=subject(host),
                observed="its address in TF_CONFIG has no port",
                expected="host:port",
                remedy=network_of("Add the port in TF_CONFIG.", "echo $TF_CONFIG"),
                rollback=BY_HAND,
            )
        elif host.resolved:
            yield Evidence(subject=subject(host), observed="has an address")
        else:
            yield Finding(
                subject=subject(host),
                observed=f"has no address ({host.error or 'no reason given'})",
                brief="its name has no address",
                expected="an address",
                remedy=network_of(
                    "Correct the name in TF_CONFIG, or add it to the name server or to /etc/hosts.",
                    f"getent ahosts {quoted(host.host)}",
                    "cat /etc/resolv.conf",
                ),
                rollback=BY_HAND,
            )
