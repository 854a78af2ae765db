"""Nodes whose check passes, and that connect to each other in the place of a training."""

import shlex
import sys
from collections.abc import Iterable
from pathlib import Path

from helpers.kdoctor_fleet.faulty_nodes import write_nodes

CONNECTS = """
import json, os, socket, sys, threading, time
place = json.loads(os.environ["TF_CONFIG"])
own = place["task"]["index"]
peers = [(address.rpartition(":")[0], int(address.rpartition(":")[2])) for address in place["cluster"]["worker"]]
with open(os.environ["FILE"]) as file:
    report = json.load(file)
if os.environ["KDOCTOR_NODE"] in os.environ["HANGS"].split() or len(peers) > int(os.environ["MOST"]):
    time.sleep(1000)
server = socket.create_server(("", peers[own][1]))
threading.Thread(target=lambda: [server.accept() for _ in range(99)], daemon=True).start()
for index, peer in enumerate(peers):
    end = time.monotonic() + 12
    while index != own:
        try:
            socket.create_connection(peer, timeout=1).close()
            break
        except OSError:
            if time.monotonic() > end:
                time.sleep(1000)
            time.sleep(0.1)
time.sleep(1)
print(json.dumps(report, indent=2))
"""
"""A worker in the place of a training: it hangs if it cannot connect to every other one."""


def write_connecting_nodes(folder: Path, names: Iterable[str], *, hangs: Iterable[str] = ()) -> Path:
    """What the nodes run; returns the program to give to ``--kdoctor``. The file ``most`` limits their groups.

    Args:
        folder: where it is written.
        names: of nodes.
        hangs: those of them that hang in a training.
    """
    (folder / "connects.py").write_text(CONNECTS, encoding="utf-8")
    (folder / "most").write_text("99", encoding="utf-8")
    program = write_nodes(folder, dict.fromkeys(names, "healthy"))
    report = (folder / "REPORT.json").read_text(encoding="utf-8").replace("STARTED-AT", "2025-01-02T03:04:05+00:00")
    (folder / "trained.json").write_text(report, encoding="utf-8")
    export = f"export FILE={folder}/trained.json MOST=$(cat {folder}/most) HANGS='{' '.join(hangs)}'"
    worker = shlex.join((sys.executable, str(folder / "connects.py")))
    instead = f'#!/bin/sh\n[ "$1" = smoke ] && {export} && exec {worker}\n'
    program.write_text(program.read_text(encoding="utf-8").replace("#!/bin/sh\n", instead), encoding="utf-8")
    return program
