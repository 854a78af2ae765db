from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.facts import Environment, Unavailable
from kdoctor.model import Evidence, Finding, NotApplicable, Outcome, Severity, Unjudged
from kdoctor_fleet.checks.network._hosts import BY_HAND, network_of, not_several, subject, tasks
from kdoctor_fleet.checks.network._rdma import hca_list, ports
from kdoctor_fleet.facts import JobHosts, Network, NetworkInterface


@check("network.mtu", severity=Severity.WARNING)
def mtu(
    network: Network, hosts: JobHosts | Unavailable, environment: Environment | Unavailable, *, least: int = 1500
) -> Iterator[Outcome]:
    """Interfaces of active RoCE ports, and routes to the job's hosts, have equal MTUs.

    Why: RoCE uses the largest RDMA MTU that fits into the interface's, and two ends with different MTUs do not connect,
    or connect and hang on large messages. If the path to a host takes smaller packets than the interface sends, large
    TCP messages hang where a firewall drops the ICMP replies. Interfaces that carry nothing of the job are not judged.
    Remedy: set the MTU of the other interfaces and of the switch (for RoCE usually 4200 or 9000).
    Sources:
        https://datatracker.ietf.org/doc/html/rfc1191
        https://man7.org/linux/man-pages/man7/ip.7.html
        https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-class-net
    """
    chosen = hca_list(environment)
    names = {
        one.port.interface
        for one in ports(network, chosen)
        if one.active and one.port.link_layer == "Ethernet" and one.port.interface
    }
    found = [interface for interface in network.interfaces or () if interface.name in names]
    routes = [host for host in tasks(hosts) if not host.local and host.path_mtu is not None]
    if isinstance(hosts, Unavailable):
        yield from not_several(hosts, environment)
    elif not found and not routes:
        yield NotApplicable(reason="no active RoCE port, and TF_CONFIG names no other machine")
    for name in sorted(names - {interface.name for interface in found}):
        yield Unjudged(subject=name, reason="its MTU was not read")
    for interface in found:
        yield _interface(interface, max(other.mtu or 0 for other in found), least)
    for host in routes:
        path, ours = host.path_mtu or 0, host.interface_mtu or host.path_mtu or 0
        if path < ours:
            observed = f"its path takes packets of {path} bytes, the interface sends {ours}"
            yield _finding(subject(host), observed, f"{ours} bytes", "its path has a smaller MTU than the interface")
        else:
            yield Evidence(subject=subject(host), observed=f"MTU {path}")


def _interface(interface: NetworkInterface, largest: int, least: int) -> Outcome:
    if interface.mtu is None:
        return Unjudged(subject=interface.name, reason="its MTU was not read")
    if interface.mtu < max(largest, least):
        expected = f"{max(largest, least)} bytes, as on the other interfaces"
        return _finding(interface.name, f"MTU {interface.mtu}", expected, "its MTU is smaller than that of the others")
    return Evidence(subject=interface.name, observed=f"MTU {interface.mtu}")


def _finding(name: str, observed: str, expected: str, brief: str) -> Finding:
    return Finding(
        subject=name,
        observed=observed,
        brief=brief,
        expected=expected,
        remedy=network_of("Set equal MTUs on interfaces and switches.", "ip -brief link", "ip route get HOST"),
        rollback=BY_HAND,
    )
