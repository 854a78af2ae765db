"""The facts of a run that other nodes of a job should share."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kdoctor.facts import Facts, Gpus, JobHosts, Network
from kdoctor.lock.facts import Section, recorded_facts

_PHYSICAL = re.compile(r"(?:en|eth|ib|hsn|bond|wl)[\w.]*")
"""Names of interfaces that the kernel or an administrator gave to devices; those of containers differ everywhere."""


def shared_facts(facts: Facts) -> Mapping[str, Mapping[str, str]]:
    """The facts as a lock records them, by section, with the network and the clock.

    They have no serial numbers, paths, host names or variables of one job.
    """
    found: dict[str, Section] = {
        name: dict(section) for name, section in recorded_facts(facts).facts.items() if name != "scenarios"
    }
    gpus, network, hosts = facts.get(Gpus), facts.get(Network), facts.get(JobHosts)
    links = [link for gpu in gpus.devices for link in gpu.nvlinks or ()] if isinstance(gpus, Gpus) else []
    if links:
        found.setdefault("topology", {})["nvlinks.active"] = str(sum(link.active is True for link in links))
    if isinstance(network, Network):
        found["network"] = _network(network)
    if isinstance(hosts, JobHosts) and hosts.clock_source is not None:
        offset = {} if hosts.clock_offset_s is None else {"offset-seconds": f"{hosts.clock_offset_s:.6f}"}
        synchronized = "unknown" if hosts.clock_synchronized is None else "yes" if hosts.clock_synchronized else "no"
        found["clock"] = {**offset, "synchronized": synchronized}
    return found


def _network(network: Network) -> Section:
    found: Section = {}
    for device in network.rdma:
        if device.firmware:
            found[f"{device.name}.firmware"] = device.firmware
        for port in device.ports:
            if port.rate_gbits is not None:
                found[f"{device.name}/{port.number}.gbit-per-second"] = f"{port.rate_gbits:g}"
            if port.link_layer:
                found[f"{device.name}/{port.number}.link-layer"] = port.link_layer
    for interface in network.interfaces or ():
        if interface.up and interface.mtu is not None and _PHYSICAL.fullmatch(interface.name):
            found[f"{interface.name}.mtu"] = str(interface.mtu)
    return found
