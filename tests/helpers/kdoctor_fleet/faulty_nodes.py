"""Nodes that are healthy or broken in one way: what ``kdoctor`` does on them, and what must be said about them."""

import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from helpers.command import KDOCTOR, environ
from helpers.kdoctor_fleet.fleets import Document, fact, healthy

NOW = "date -u +%Y-%m-%dT%H:%M:%SZ"
_STARTED = "STARTED-AT"


@dataclass(frozen=True, kw_only=True)
class Node:
    """A kind of node."""

    script: str
    """Of a POSIX shell. ``REPORT`` writes the report of a healthy node."""
    state: str
    """In the fleet's report."""
    says: str = ""
    """Part of the reason or of a problem."""


NODES: Mapping[str, Node] = {
    "healthy": Node(script="REPORT", state="passed"),
    "noisy": Node(
        script=r"""printf 'Welcome to \033[31mnode\033[0m\n{not a report}\n'; REPORT; echo; echo logout""",
        state="passed",
    ),
    "hanging": Node(script="echo '{'; exec sleep 120", state="silent", says="no report within 15 s"),
    "dying": Node(script="REPORT | head -c 5000; kill -KILL $$", state="silent", says="was killed there"),
    "garbage": Node(script="head -c 100000 /dev/urandom", state="silent", says="its output is not a report"),
    "flood": Node(script="tr '\\0' x < /dev/zero | head -c 100000000", state="silent", says="more than 32 MiB"),
    # srun passes on so few lines a second that the deadline may come first
    "lines": Node(script="yes '{' | head -c 100000000", state="silent", says="more than 32 MiB|no report within 15 s"),
    "keras": Node(script="KERAS", state="failed", says="keras 3.1.1"),
    "full": Node(
        script=f'exec {shlex.quote(sys.executable)} -m kdoctor "$@" > /dev/full',
        state="silent",
        says="No space left on device",
    ),
    "absent": Node(script="exec /absent/kdoctor", state="silent", says="kdoctor cannot be started there"),
    "older": Node(script="OLDER", state="unknown"),
    "usage": Node(
        script="echo 'kdoctor: --no-history: no such option' >&2; exit 2", state="silent", says="exit code 2: kdoctor: "
    ),
    "clock": Node(script="LATE", state="passed", says="behind"),
    "impostor": Node(script="IMPOSTOR", state="passed"),
}
"""The name is that of the node, so that every engine has the same nodes."""


def older(document: Document) -> Document:
    """The report of a kdoctor that knew nothing of fleets."""
    return {
        key: value
        for key, value in document.items()
        if key not in ("node", "facts", "causes", "categories", "trainings")
    }


def write_nodes(folder: Path, names: Mapping[str, str] | None = None) -> Path:
    """What the nodes run; returns the program to give to ``--kdoctor``.

    Args:
        folder: where it is written.
        names: of nodes, to their kinds; each kind once if None.
    """
    good = healthy("node") | {"started_at": _STARTED}
    other: dict[str, Any] = json.loads(json.dumps(good))
    fact("packages", "keras", "3.1.1")(other)
    reports = {
        "REPORT": (good, NOW),
        "KERAS": (other, NOW),
        "OLDER": (older(good), NOW),
        "LATE": (good, NOW.replace("-u", "-u -d '1 hour ago'")),
        "IMPOSTOR": (good | {"node": good["node"] | {"name": "healthy"}}, NOW),
    }
    commands = {}
    for word, (document, date) in reports.items():
        file = folder / f"{word}.json"
        file.write_text(json.dumps(document, indent=2), encoding="utf-8")
        commands[word] = f'sed "s/{_STARTED}/$({date})/" {shlex.quote(str(file))}'
    for name, kind in (names or {kind: kind for kind in NODES}).items():
        script = NODES[kind].script
        for word, command in commands.items():
            script = script.replace(word, command)
        (folder / f"{name}.sh").write_text(f"{script}\n", encoding="utf-8")
    program = folder / "kdoctor"
    program.write_text(f'#!/bin/sh\n. "{folder}/$KDOCTOR_NODE.sh"\n', encoding="utf-8")
    program.chmod(0o755)
    return program


def assert_judged(document: Document, names: Mapping[str, str]) -> None:
    """Each node of the fleet's report is in the state of its kind, and the report says why."""
    found = {node["name"]: node for node in document["nodes"]}
    assert sorted(found) == sorted(names)
    for name, kind in names.items():
        node, expected = found[name], NODES[kind]
        texts = [node["reason"], *(problem["headline"] for problem in node["problems"])]
        assert node["state"] == expected.state, (name, kind, texts)
        assert any(part in text for part in expected.says.split("|") for text in texts), (name, kind, texts)
    assert document["passing"] == sorted(name for name, kind in names.items() if NODES[kind].state == "passed")


def interrupt(
    folder: Path,
    *arguments: str | Path,
    number: signal.Signals = signal.SIGINT,
    variables: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Start ``kdoctor fleet run`` with its reports in ``r``, and send it a signal when two nodes have reported."""
    command = [*KDOCTOR, "fleet", "run", *map(str, arguments), "--reports", "r"]
    with subprocess.Popen(
        command, cwd=folder, env=environ(**(variables or {})), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        while len(list(folder.glob("r/nodes/*.json"))) < 2 and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(number)
        stdout, stderr = process.communicate(timeout=60)
    return subprocess.CompletedProcess(command, process.returncode, stdout, stderr)


def assert_nothing_runs(program: Path) -> None:
    """Neither here nor on the nodes, which are this machine, is a process of the program left after 30 s."""
    left = ""
    for _ in range(300):
        left = subprocess.run(("pgrep", "-f", str(program)), capture_output=True, text=True, check=False).stdout
        if not left:
            return
        time.sleep(0.1)
    raise AssertionError(f"processes of {program.name} still run: {left.split()}")
