from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Environment, Unavailable
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Severity, Unjudged
from kdoctor_fleet.checks.network._hosts import network_of, not_several, subject, tasks
from kdoctor_fleet.facts import JobHosts


@check("network.port-free", severity=Severity.ERROR)
def port_free(hosts: JobHosts | Unavailable, environment: Environment | Unavailable) -> Iterator[Outcome]:
    """This machine's port in TF_CONFIG is free.

    Why: TensorFlow opens its server on this port and ends with an error if another program has it, often the process of
    an earlier job that did not end. An error, because the job does not start.
    Remedy: end that program, or choose another port in TF_CONFIG on all machines.
    Sources:
        https://man7.org/linux/man-pages/man2/bind.2.html
        https://www.tensorflow.org/guide/distributed_training#setting_up_the_tf_config_environment_variable
    """
    yield from not_several(hosts, environment)
    own = [host for host in tasks(hosts) if host.own]
    if tasks(hosts) and not own:
        yield NotApplicable(reason="TF_CONFIG does not say which task this machine has")
    for host in own:
        if host.port_free is None:
            yield Unjudged(
                subject=subject(host), reason="the port was not tried", explained_by=("network.hosts-resolve",)
            )
        elif host.port_free:
            yield Evidence(subject=subject(host), observed=f"port {host.port} is free")
        else:
            yield Finding(
                subject=subject(host),
                observed=f"port {host.port} cannot be opened ({host.error or 'no reason given'})",
                brief="its port is in use",
                expected="a free port",
                remedy=network_of(
                    "End the program that has the port, or choose another port in TF_CONFIG on all machines.",
                    f"ss -ltnp 'sport = :{host.port}'",
                ),
            )
