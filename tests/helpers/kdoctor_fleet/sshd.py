"""Real OpenSSH servers on loopback ports, and a client configuration in which many hosts lead to them."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from helpers.integrations import tool
from helpers.kdoctor_fleet.slurm import free_ports

PROGRAMS = ("sshd", "ssh", "ssh-keygen")


class Sshd:
    """Four servers. Each host of the client's configuration is one of them, by turns."""

    def __init__(self, folder: Path, hosts: Iterable[str], servers: int = 4) -> None:
        self.folder = folder
        self.hosts = tuple(hosts)
        self.ports = free_ports(servers)
        self.processes: list[subprocess.Popen[bytes]] = []

    @property
    def option(self) -> str:
        """The option of ssh that names the configuration."""
        return f"-F{self.folder}/config"

    def start(self) -> None:
        """Create keys, start the servers, and wait until they listen."""
        for name in ("host", "user"):
            create = ("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name))
            subprocess.run(create, check=True, capture_output=True)
        key = (self.folder / "host.pub").read_text(encoding="utf-8").rsplit(" ", 1)[0]
        known = "".join(f"[{host}]:{port} {key}\n" for host, port in self.places)
        (self.folder / "known_hosts").write_text(known, encoding="utf-8")
        (self.folder / "config").write_text(self._client(), encoding="utf-8")
        Path("/run/sshd").mkdir(exist_ok=True)  # sshd refuses to start without it
        for port, inside in zip(self.ports, self.inside(), strict=True):
            (self.folder / f"sshd-{port}").write_text(self._server(port), encoding="utf-8")
            command = (*inside, str(tool("sshd")), "-D", "-e", "-f", str(self.folder / f"sshd-{port}"))
            with (self.folder / f"sshd-{port}.log").open("wb") as log:
                self.processes.append(subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True))
        for host, port in self.places:
            self._wait_for(host, port)

    @property
    def places(self) -> list[tuple[str, int]]:
        """Where the servers listen."""
        return [("127.0.0.1", port) for port in self.ports]

    def inside(self) -> list[tuple[str, ...]]:
        """What starts each server where it belongs."""
        return [() for _ in self.ports]

    def stop(self) -> None:
        """End the servers and what they started."""
        for process in self.processes:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait(timeout=30)

    def _wait_for(self, host: str, port: int) -> None:
        for _ in range(100):
            try:
                socket.create_connection((host, port), timeout=1).close()
            except OSError:
                time.sleep(0.1)
            else:
                return
        log = (self.folder / f"sshd-{port}.log").read_text(errors="replace")
        raise AssertionError(f"sshd does not listen on port {port}: {log}")

    def _server(self, port: int) -> str:
        host = next(host for host, used in self.places if used == port)
        values = {
            "Port": port, "ListenAddress": host, "HostKey": self.folder / "host", "UsePAM": "no",
            "StrictModes": "no", "AuthorizedKeysFile": self.folder / "user.pub", "PidFile": "none",
            "PasswordAuthentication": "no", "PermitRootLogin": "yes", "MaxStartups": 100,
        }  # fmt: skip
        return "".join(f"{name} {value}\n" for name, value in values.items())

    def _client(self) -> str:
        hosts = "".join(
            "Host {}\n  HostName {}\n  Port {}\n".format(host, *self.places[index % len(self.places)])
            for index, host in enumerate(self.hosts)
        )
        return (
            f"{hosts}Host unknown\n  Port {self.ports[0]}\n  UserKnownHostsFile /dev/null\n"
            f"Host stranger\n  Port {self.ports[0]}\n  PreferredAuthentications none\n"
            f"Host closed\n  Port {free_ports(1)[0]}\n"
            f"Host *\n  HostName 127.0.0.1\n  IdentityFile {self.folder}/user\n  IdentitiesOnly yes\n"
            f"  UserKnownHostsFile {self.folder}/known_hosts\n  GlobalKnownHostsFile /dev/null\n"
            "  StrictHostKeyChecking yes\n"
        )
