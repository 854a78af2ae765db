from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Environment, Unavailable
from kdoctor.model import Evidence, Finding, Outcome, Severity, Unjudged
from kdoctor_fleet.checks.network._rdma import Port, active_ports, alike, inspect
from kdoctor_fleet.facts import Network


@check("network.port-rate", severity=Severity.WARNING, needs_gpus=True)
def port_rate(network: Network, environment: Environment | Unavailable) -> Iterator[Outcome]:
    """Every active RDMA port runs at the rate of the equal ports, and InfiniBand uses several lanes.

    Why: the ring of an all-reduce is as fast as its slowest link. sysfs has the current rate and not the highest one of
    a card, and cards of one type are sold for several rates. So the reference is the fastest port of an equal card
    (board id) on this machine. One lane of InfiniBand is always a damaged cable or connector: cards have four, and a
    splitter cable has two.
    Remedy: reseat or replace the cable, and compare the settings of the two switch ports.
    Source: https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-class-infiniband
    """
    found = yield from active_ports(network, environment)
    for one, others in alike(found):
        rates = [other.port.rate_gbits for other in others if other.port.rate_gbits is not None]
        if one.port.rate_gbits is None:
            yield Unjudged(subject=one.subject, reason="its rate was not read")
        elif one.port.lanes == 1 and one.port.link_layer == "InfiniBand":
            yield _finding(one, "several lanes", "uses 1 lane")
        elif rates and one.port.rate_gbits < max(rates):
            yield _finding(
                one, f"{max(rates):g} Gbit/s, as on the other ports of such a card", "slower than its equals"
            )
        else:
            compared = f"; no equal port is faster ({len(rates)} compared)" if rates else "; no equal port to compare"
            yield Evidence(subject=one.subject, observed=one.rate + compared)


def _finding(one: Port, expected: str, brief: str) -> Finding:
    return Finding(
        subject=one.subject,
        observed=one.rate,
        brief=brief,
        expected=expected,
        remedy=inspect("Reseat or replace the cable, and compare the settings of the switch ports."),
    )
