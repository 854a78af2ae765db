"""Nodes of a real network on this machine: an OpenSSH server in each of several network namespaces, on one bridge."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from helpers.integrations import tool
from helpers.kdoctor_fleet.sshd import PROGRAMS as OF_SSH
from helpers.kdoctor_fleet.sshd import Sshd

PROGRAMS = (*OF_SSH, "ip", "iptables")


def may_create() -> bool:
    """Whether this user may create network namespaces with filters."""
    if os.geteuid() or any(tool(name) is None for name in PROGRAMS):
        return False
    name = f"kdoctor-try-{os.getpid()}"
    created = subprocess.run(("ip", "netns", "add", name), capture_output=True, check=False)
    if created.returncode:
        return False
    try:
        listed = ("ip", "netns", "exec", name, str(tool("iptables")), "-L", "-n")
        return subprocess.run(listed, capture_output=True, check=False).returncode == 0
    finally:
        subprocess.run(("ip", "netns", "del", name), check=True)


class NamespaceNodes(Sshd):
    """A host for each namespace. The bridge is this machine's."""

    def __init__(self, folder: Path, hosts: Iterable[str]) -> None:
        names = tuple(hosts)
        super().__init__(folder, names, servers=len(names))
        self.network = f"10.231.{os.getpid() % 250}"
        self.bridge = f"kdoctor{os.getpid() % 10**6}"
        self.namespaces = [f"{self.bridge}-{index}" for index in range(1, len(names) + 1)]

    @property
    def places(self) -> list[tuple[str, int]]:
        return [(f"{self.network}.{index}", port) for index, port in enumerate(self.ports, 1)]

    def inside(self) -> list[tuple[str, ...]]:
        return [("ip", "netns", "exec", name) for name in self.namespaces]

    def start(self) -> None:
        """Create the network, then start the servers."""
        self._ip("link", "add", self.bridge, "type", "bridge")
        self._ip("addr", "add", f"{self.network}.254/24", "dev", self.bridge)
        self._ip("link", "set", self.bridge, "up")
        for index, name in enumerate(self.namespaces, 1):
            outside = f"kdv{os.getpid() % 10**6}-{index}"
            self._ip("netns", "add", name)
            self._ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
            self._ip("link", "set", outside, "master", self.bridge, "up")
            for words in (("addr", "add", f"{self.network}.{index}/24", "dev", "eth0"), ("link", "set", "eth0", "up")):
                self._ip("-n", name, *words)
            self._ip("-n", name, "link", "set", "lo", "up")
        super().start()

    def stop(self) -> None:
        """End the servers and remove the network."""
        super().stop()
        for name in self.namespaces:
            subprocess.run(("ip", "netns", "del", name), capture_output=True, check=False)
        subprocess.run(("ip", "link", "del", self.bridge), capture_output=True, check=False)

    def drop(self, host: str, ports: str, *, from_host: str | None = None) -> None:
        """Drop what comes to these ports of a host, from one host or from all."""
        source = ("--source", self.places[self.hosts.index(from_host)][0]) if from_host else ()
        self._filter(host, "-A", source, ports)

    def accept(self, host: str, ports: str, *, from_host: str | None = None) -> None:
        """Undo ``drop``."""
        source = ("--source", self.places[self.hosts.index(from_host)][0]) if from_host else ()
        self._filter(host, "-D", source, ports)

    def _filter(self, host: str, change: str, source: tuple[str, ...], ports: str) -> None:
        inside = self.inside()[self.hosts.index(host)]
        rule = (change, "INPUT", "--protocol", "tcp", *source, "--dport", ports, "--jump", "DROP")
        subprocess.run((*inside, str(tool("iptables")), *rule), check=True)

    @staticmethod
    def _ip(*words: str) -> None:
        subprocess.run(("ip", *words), check=True, capture_output=True)
