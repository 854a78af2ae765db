"""The place of this process among the workers of a job over several nodes, from TF_CONFIG."""

from __future__ import annotations

import json
import os
import socket
from typing import NamedTuple

from kdoctor_target.runner.case import Case


class Place(NamedTuple):
    """One worker of several."""

    addresses: list[str]
    """``host:port`` of each worker."""
    number: int
    """Of this one."""

    @property
    def address(self) -> str:
        """Where the others expect this one."""
        return self.addresses[self.number]


def read_place(case: Case) -> Place:
    """The place that TF_CONFIG names.

    Raises:
        NotHere: it names fewer than two workers.
    """
    config = json.loads(os.environ.get("TF_CONFIG") or "{}")
    addresses = config.get("cluster", {}).get("worker", [])
    if len(addresses) < 2:  # noqa: PLR2004 - two workers communicate
        case.skip("TF_CONFIG names fewer than two workers")
    os.environ["no_grpc_proxy"] = ",".join(address.rpartition(":")[0] for address in addresses)  # noqa: SIM112 - gRPC's
    return Place(addresses, int(config["task"]["index"]))


def require_port(case: Case, address: str) -> None:
    """Do nothing if this process can listen on the port of its address.

    Raises:
        NotHere: another process listens there.
    """
    port = int(address.rpartition(":")[2])
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("", port))
        except OSError as error:
            case.skip(f"port {port} cannot be used: {error.strerror or error}")
