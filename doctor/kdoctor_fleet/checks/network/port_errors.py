from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.commands.shell import quoted
from kdoctor.facts import Environment, Unavailable
from kdoctor.model import Evidence, Finding, Outcome, Severity, Unjudged
from kdoctor_fleet.checks.network._rdma import active_ports, inspect
from kdoctor_fleet.facts import Network

_NAMES = {"link_downed": "link downs", "symbol_errors": "symbol errors", "receive_errors": "receive errors"}


@check("network.port-errors", severity=Severity.WARNING, needs_gpus=True)
def port_errors(
    network: Network,
    environment: Environment | Unavailable,
    *,
    most_link_downs: int = 10,
    most_symbol_errors: int = 1000,
    most_receive_errors: int = 1000,
) -> Iterator[Outcome]:
    """The error counters of the active RDMA ports are low.

    Why: a link that goes down ends every NCCL operation that uses it. Symbol errors that error correction did not fix,
    and damaged packets, are sent again and delay all replicas. The counters have no time: they count since the driver
    was loaded or the counters were cleared, and restarts of a switch count too. So the limits are wide, and a checklist
    may set narrower ones for a machine that was cleared.
    Remedy: clean or replace the cable, clear the counters (perfquery -R), and look again after a day.
    Sources:
        https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-class-infiniband
        https://enterprise-support.nvidia.com/s/article/understanding-mlx5-linux-counters-and-status-parameters
    """
    found = yield from active_ports(network, environment)
    most = {"link_downed": most_link_downs, "symbol_errors": most_symbol_errors, "receive_errors": most_receive_errors}
    for one in found:
        counts = {name: getattr(one.port, name) for name in most}
        known = {name: count for name, count in counts.items() if count is not None}
        above = [name for name, count in known.items() if count > most[name]]
        if not known:
            yield Unjudged(subject=one.subject, reason="its driver shows no error counters")
            continue
        observed = ", ".join(f"{count} {_NAMES[name]}" for name, count in known.items())
        if not above:
            yield Evidence(subject=one.subject, observed=observed)
            continue
        yield Finding(
            subject=one.subject,
            observed=observed,
            brief=f"many {' and '.join(_NAMES[name] for name in above)}",
            expected="at most " + ", ".join(f"{most[name]} {_NAMES[name]}" for name in above),
            remedy=inspect(
                "Clean or replace the cable, clear the counters, and look again after a day of load.",
                f"grep -H . /sys/class/infiniband/{quoted(one.device.name)}/ports/{one.port.number}/counters/*",
            ),
        )
