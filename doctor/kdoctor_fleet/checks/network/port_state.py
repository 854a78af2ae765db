from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Environment, Unavailable
from kdoctor.model import Evidence, Finding, Outcome, Severity, Unjudged
from kdoctor.text.lists import counted
from kdoctor_fleet.checks.network._rdma import HCA, NO_RDMA, Port, alike, hca_list, inspect, ports
from kdoctor_fleet.facts import JobHosts, Network


@check("network.port-state", severity=Severity.WARNING, needs_gpus=True)
def port_state(
    network: Network, environment: Environment | Unavailable, hosts: JobHosts | Unavailable
) -> Iterator[Outcome]:
    """Every RDMA port that the job may use is active.

    Why: NCCL uses the active ports only, so gradients share the bandwidth of those that are left, or go through TCP. A
    job on one machine needs no port: an inactive port is a finding if its link is up, if ports of equal cards are
    active, if NCCL_IB_HCA names it, or if TF_CONFIG names several machines and no port is active. Many cards have a
    port without a cable.
    Remedy: check the cable and the switch port, and that a subnet manager runs on an InfiniBand fabric.
    Sources:
        https://www.kernel.org/doc/Documentation/ABI/stable/sysfs-class-infiniband
        https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html
    """
    if not network.rdma:
        yield NO_RDMA
        return
    chosen = hca_list(environment)
    named = chosen is not None and not chosen.exclude
    used = ports(network, chosen)
    several = isinstance(hosts, JobHosts) and len(hosts.hosts) > 1
    needed = several and not any(one.active for one in used)
    yield from (Unjudged(subject=one.name, reason="its ports were not read") for one in network.rdma if not one.ports)
    for one, others in alike(ports(network)):
        equal = [other.subject for other in others if other.active and other.port.number == one.port.number]
        if one.port.state is None:
            yield Unjudged(subject=one.subject, reason="its state was not read")
        elif one.active:
            layer = one.port.link_layer or "link layer unknown"
            yield Evidence(subject=one.subject, observed=f"ACTIVE, {one.rate}, {layer}", brief=f"{one.rate} {layer}")
        elif one not in used:
            yield Evidence(subject=one.subject, observed=f"{_state(one)}; not selected by {HCA}")
        elif named or needed or equal or one.port.physical_state == "LinkUp":
            yield _finding(one, equal)
        else:
            yield Evidence(subject=one.subject, observed=f"{_state(one)}; no port of such a card is active")


def _state(one: Port) -> str:
    return f"{one.port.state} ({one.port.physical_state or 'physical state unknown'})"


def _finding(one: Port, equal: list[str]) -> Finding:
    unmanaged = one.port.physical_state == "LinkUp" and one.port.state == "INIT"
    summary = (
        "Start a subnet manager (opensm, or that of the switch): the link is up, and no subnet manager configured it."
        if unmanaged
        else "Check the cable, the transceiver and the switch port."
    )
    others = (
        f"; {counted(len(equal), 'equal port')} are active"
        if len(equal) > 1
        else f"; {equal[0]} is active"
        if equal
        else ""
    )
    return Finding(
        subject=one.subject,
        observed=f"{_state(one)}{others}",
        brief=f"{one.port.state} ({one.port.physical_state})" if one.port.physical_state else f"{one.port.state}",
        expected="ACTIVE (LinkUp)",
        remedy=inspect(summary),
    )
