"""The process that asks the network about the hosts in TF_CONFIG.

Each task has a separate thread, so that one that hangs does not stop the others. For each step that ended, it sends the
record ``{"task": ..., <fields of JobHost>}``. It connects to ports and sends nothing.
"""

import errno
import json
import os
import socket
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

import psutil

CONNECT_S = 4.0
_IP_MTU, _IPV6_MTU = 14, 24
"""Socket options of Linux (ip(7), ipv6(7))."""
_STATES = {
    errno.ECONNREFUSED: "refused",
    errno.ETIMEDOUT: "timed-out",
    errno.EHOSTUNREACH: "unreachable",
    errno.ENETUNREACH: "unreachable",
    errno.EACCES: "unreachable",
    errno.EPERM: "unreachable",
}


def main(settings: Mapping[str, Any]) -> None:
    """Ask about every task. ``settings``: ``tasks``, fields of ``JobHost``, and ``deadline_s``."""
    threads = [threading.Thread(target=_examine, args=(task,), daemon=True) for task in settings["tasks"]]
    end = time.monotonic() + 0.9 * float(settings["deadline_s"])
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=max(0.0, end - time.monotonic()))
    sys.stdout.flush()
    os._exit(0)  # an ordinary exit would wait for a thread that hangs in the resolver


def _examine(task: dict[str, Any]) -> None:
    facts = dict(task)
    address = _resolve(facts)
    _send(facts)
    if address is None or facts["port"] is None:
        return
    family, where = address
    facts["local"] = _is_local(family, where)
    facts |= _mtu(family, where)
    if facts["own"]:
        facts |= _bind(family, int(facts["port"]))
    else:
        facts |= _connect(family, where)
    _send(facts)
    facts["resolves_back"] = _resolves_back(where[0])
    _send(facts)


def _send(facts: Mapping[str, Any]) -> None:
    text = "\x1e" + json.dumps(facts) + "\n"
    os.write(1, text.encode())


def _resolve(facts: dict[str, Any]) -> tuple[int, Any] | None:
    """Family and address of the host; notes whether it has one."""
    try:
        found = socket.getaddrinfo(facts["host"], facts["port"], type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        facts |= {"resolved": False, "error": getattr(error, "strerror", None) or str(error)}
        return None
    facts["resolved"] = True
    return found[0][0], found[0][4]


def _is_local(family: int, where: Any) -> bool | None:
    """Whether a socket can be bound to the address, which works for addresses of this machine only."""
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((where[0], 0, *where[2:]))
        except OSError as error:
            return False if error.errno == errno.EADDRNOTAVAIL else None
    return True


def _bind(family: int, port: int) -> dict[str, Any]:
    with socket.socket(family, socket.SOCK_STREAM) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # connections that just ended do not count
        try:
            server.bind(("", port))
            server.listen(1)
        except OSError as error:
            return {"port_free": False, "error": error.strerror}
    return {"port_free": True}


def _connect(family: int, where: Any) -> dict[str, Any]:
    with socket.socket(family, socket.SOCK_STREAM) as client:
        client.settimeout(CONNECT_S)
        try:
            client.connect(where)
        except TimeoutError:
            return {"state": "timed-out", "error": f"no answer within {CONNECT_S:g} s"}
        except OSError as error:
            return {"state": _STATES.get(error.errno or 0), "error": error.strerror}
    return {"state": "connected"}


def _mtu(family: int, where: Any) -> dict[str, Any]:
    """MTU of the route and of its interface. A UDP socket finds the route without sending anything."""
    level, option = (socket.IPPROTO_IPV6, _IPV6_MTU) if family == socket.AF_INET6 else (socket.IPPROTO_IP, _IP_MTU)
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(where)
            path, ours = probe.getsockopt(level, option), probe.getsockname()[0]
    except OSError:
        return {}
    named = (name for name, found in psutil.net_if_addrs().items() if any(one.address == ours for one in found))
    stats = psutil.net_if_stats().get(next(named, ""))
    # The loopback interface has a larger MTU than a packet can be.
    return {"path_mtu": path, "interface_mtu": min(stats.mtu, 2**16 - 1) if stats else None}


def _resolves_back(address: str) -> bool | None:
    try:
        name = socket.gethostbyaddr(address)[0]
        return address in {found[4][0] for found in socket.getaddrinfo(name, None)}
    except socket.gaierror as error:
        return None if error.errno == socket.EAI_AGAIN else False
    except OSError:
        return False
