"""`kdoctor fleet run --engine ssh` over four real OpenSSH servers."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.command import KDOCTOR, environ, kdoctor
from helpers.integrations import needs
from helpers.kdoctor_fleet.faulty_nodes import NODES, assert_judged, assert_nothing_runs, interrupt, write_nodes
from helpers.kdoctor_fleet.sshd import PROGRAMS, Sshd

pytestmark = [pytest.mark.fleet, *needs(*PROGRAMS)]

KINDS = {kind: kind for kind in NODES} | {"good2": "healthy", "good3": "healthy", "good4": "healthy"}


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    servers = Sshd(tmp_path_factory.mktemp("sshd"), KINDS)
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return write_nodes(tmp_path, KINDS)


def command(servers: Sshd, program: Path, *arguments: str | Path) -> list[str]:
    common = ("--engine", "ssh", f"--engine-option={servers.option}", "--kdoctor", program, "--reports", "r")
    return list(map(str, ("fleet", "run", *common, "-f", "json", *arguments)))


def run(servers: Sshd, program: Path, *arguments: str | Path) -> Any:
    done = kdoctor(*command(servers, program, *arguments), cwd=program.parent)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def test_every_fault_is_named_and_nothing_else(servers: Sshd, program: Path) -> None:
    words = [*KDOCTOR, *command(servers, program, "-w", ",".join(KINDS), "--node-timeout", "15")]
    with subprocess.Popen(words, cwd=program.parent, env=environ(), stdout=subprocess.PIPE) as process:
        output = process.stdout.read() if process.stdout else b""
        _, _, used = os.wait4(process.pid, 0)
    document = json.loads(output)
    assert_judged(document, KINDS)
    assert used.ru_maxrss < 400_000  # KiB, of this command and not of what other tests started
    assert document["verdict"] == "fail"


def test_hosts_that_cannot_be_reached_are_silent_with_the_words_of_ssh(servers: Sshd, program: Path) -> None:
    document = run(servers, program, "-w", "healthy,unknown,stranger,closed")
    reasons = {node["name"]: node["reason"] for node in document["nodes"] if node["state"] == "silent"}
    assert "Host key verification failed" in reasons["unknown"]
    assert "Permission denied" in reasons["stranger"]
    assert "Connection refused" in reasons["closed"]
    assert document["passing"] == ["healthy"]


def test_nodes_that_end_later_are_killed_at_the_deadline_of_the_run(servers: Sshd, program: Path) -> None:
    started = time.monotonic()
    document = run(servers, program, "-w", "healthy,hanging", "--timeout", "5")
    assert time.monotonic() - started < 30
    assert {node["name"]: node["state"] for node in document["nodes"]} == {"healthy": "passed", "hanging": "silent"}


def test_interrupted_controller_resumes(servers: Sshd, program: Path) -> None:
    folder = program.parent
    options = (
        "--engine",
        "ssh",
        f"--engine-option={servers.option}",
        "--kdoctor",
        program,
        "-w",
        "healthy,good2,hanging",
    )
    # After SIGKILL, not even the record is complete.
    interrupt(folder, *options, number=signal.SIGKILL)
    assert_nothing_runs(program)
    write_nodes(folder, {"hanging": "healthy", "healthy": "absent"})
    done = kdoctor("fleet", "run", *options, "--resume", "--reports", "r", "-f", "json", cwd=folder)
    document = json.loads(done.stdout)
    assert document["passing"] == ["good2", "hanging", "healthy"]  # healthy was not asked again
    assert done.returncode == 0


def test_real_check_runs_on_each_host(servers: Sshd, tmp_path: Path) -> None:
    program = " ".join(KDOCTOR)
    options = ("--no-smoke", "--checklist", "cpu-smoke", "--select", "versions")
    arguments = command(servers, Path(program), "-w", "healthy,good2", "--", *options)
    done = kdoctor(*arguments, cwd=tmp_path)
    document = json.loads(done.stdout)
    reasons = {node["name"]: node["reason"] for node in document["nodes"]}  # what passed was asked less than the fleet
    assert ["left out by --select versions --no-smoke" in one for one in reasons.values()] == [True, True], (
        reasons,
        done.stderr,
    )
