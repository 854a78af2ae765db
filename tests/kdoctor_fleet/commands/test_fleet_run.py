import json
import os
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from helpers.cases import cases
from helpers.command import KDOCTOR, environ
from helpers.kdoctor_fleet.faulty_nodes import write_nodes
from helpers.kdoctor_fleet.fleets import asked
from kdoctor.errors import UsageError
from kdoctor.run.log import style
from kdoctor_fleet.commands.fleet import app

KINDS = {"n1": "healthy", "n2": "healthy", "n3": "keras", "n4": "absent", "n5": "noisy"}


@pytest.fixture(autouse=True)
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program ``ssh`` that runs the command here; returns what to start on the nodes."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ssh").write_text(f'#!/bin/sh\nfor last; do :; done\necho "$last" >> {tmp_path}/calls\neval "$last"\n')
    (tmp_path / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    return write_nodes(tmp_path, KINDS)


def run(*arguments: str | Path, code: int) -> Any:
    return json.loads(asked("run", "-f", "json", *arguments, code=code))


def states(document: Any) -> dict[str, str]:
    return {node["name"]: node["state"] for node in document["nodes"]}


def test_nodes_are_asked_and_judged(ssh: Path) -> None:
    document = run("--engine", "ssh", "-w", "n[1-5]", "--kdoctor", ssh, "--reports", "r", "--lists", ".", code=1)
    assert states(document) == {"n1": "passed", "n2": "passed", "n3": "failed", "n4": "silent", "n5": "passed"}
    assert "cannot be started there" in document["nodes"][3]["reason"]
    assert Path("failing.txt").read_text().split() == ["n3", "n4"]
    hosts = next(item for item in document["exclusions"] if item["engine"] == "hosts")
    (lists,) = hosts["leave_out"]
    merged = asked(*shlex.split(lists)[2:], "-f", "json", "--engine", "hosts", code=1)
    assert Path("passing.txt").read_text().split() == ["n1", "n2", "n5"]
    assert states(json.loads(merged)) == states(document)


def test_resumed_run_asks_the_silent_nodes_only(ssh: Path, tmp_path: Path) -> None:
    run("--engine", "ssh", "-w", "n[1-5]", "--kdoctor", ssh, "--reports", "r", "--", "--no-smoke", code=1)
    (tmp_path / "n4.sh").write_text((tmp_path / "n1.sh").read_text())
    Path("calls").unlink()
    again = ("--engine", "ssh", "-w", "n[1-5]", "--kdoctor", ssh, "--reports", "r", "--resume", "--min-healthy", "4")
    document = run(*again, "--", "--no-smoke", code=0)
    assert states(document)["n4"] == "passed"
    assert Path("calls").read_text().count("check --format json --quiet --no-history --timeout ") == 1


def test_report_counts_for_the_node_that_was_asked(ssh: Path, tmp_path: Path) -> None:
    write_nodes(tmp_path, {"n1": "healthy", "n2": "impostor"})
    document = run("--engine", "ssh", "-w", "n[1-2]", "--kdoctor", ssh, "--reports", "r", code=0)
    assert states(document) == {"n1": "passed", "n2": "passed"}


def test_clock_that_is_behind_is_found(ssh: Path, tmp_path: Path) -> None:
    write_nodes(tmp_path, {"n2": "clock"})
    document = run("--engine", "ssh", "-w", "n[1-2]", "--kdoctor", ssh, "--reports", "r", code=0)
    assert [cause["checks"] for cause in document["causes"]] == [["cluster.clock"]]
    assert document["causes"][0]["nodes"] == ["n2"]


def test_fleet_without_a_report_is_inconclusive(ssh: Path) -> None:
    document = run("--engine", "ssh", "-w", "n4,n6", "--kdoctor", ssh, "--reports", "r", code=3)
    assert states(document) == {"n4": "silent", "n6": "silent"}


def test_interrupted_run_keeps_its_reports(ssh: Path, tmp_path: Path) -> None:
    write_nodes(tmp_path, {"n4": "hanging"})
    process = subprocess.Popen(
        [*KDOCTOR, "fleet", "run", "--engine", "ssh", "-w", "n[1-2],n4", "--kdoctor", ssh, "--reports", "r"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ(),
    )
    while len(list(Path("r/nodes").glob("*.json"))) < 2 and process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.2)
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr
    assert b"n4: the run was interrupted" in stdout
    assert b"--resume --reports r" in stderr
    assert b"Traceback" not in stderr
    (tmp_path / "n4.sh").write_text((tmp_path / "n1.sh").read_text())
    again = run("--engine", "ssh", "-w", "n[1-2],n4", "--kdoctor", ssh, "--reports", "r", "--resume", code=0)
    assert states(again)["n4"] == "passed"


@cases(
    [],
    ["--engine", "shh", "-w", "n1"],
    ["--engine", "ssh"],
    ["--engine", "ssh", "-w", "n[1-"],
    ["--engine", "ssh", "-w", "-oProxyCommand=reboot"],
    ["--engine", "ssh", "-w", "n1", "--nodes-file", "x"],
    ["--engine", "ssh", "-w", "n1", "--kdoctor", "'"],
    ["--engine", "ssh", "-w", "n1", "--kdoctor", ""],
    ["--engine", "ssh", "-w", "n1", "--reports", "ssh"],
    ["--engine", "ssh", "-w", "n1", "--", "--format", "html"],
    ["--engine", "ssh", "-w", "n1", "--", "--log-format=json"],
    ["--engine", "ssh", "-w", "n1", "--min-healthy", "110%"],
    ["--engine", "ssh", "-w", "n1", "--full-matrix"],
    ["--engine", "ssh", "-w", "n1", "--pairs", "--pair-framework", "torch"],
    ["--engine", "ssh", "-w", "n1", "--pairs", "--pair-address", "fixed"],
    ["--resume"],
    ["--resume", "--reports", "absent", "--engine", "ssh", "-w", "n1"],
)
def test_wrong_options_are_usage_errors_before_a_node_is_asked(arguments: list[str]) -> None:
    with pytest.raises(UsageError):
        run(*arguments, code=2)
    assert not Path("calls").exists()


def test_folder_of_another_run_is_not_overwritten(ssh: Path, tmp_path: Path) -> None:
    run("--engine", "ssh", "-w", "n1", "--kdoctor", ssh, "--reports", "r", code=0)
    with pytest.raises(UsageError, match="another run"):
        run("--engine", "ssh", "-w", "n2", "--kdoctor", ssh, "--reports", "r", code=2)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("program", ["sh", "-c", "touch pwned"]),
        ("options", ["--plugin", "evil"]),
        ("engine_options", ["-oProxyCommand=touch pwned"]),
        ("engine", "slurm"),
        ("nodes", ["n2"]),
        ("nodes", ["../n1"]),
    ],
)
def test_record_in_a_folder_is_compared_and_never_executed(ssh: Path, key: str, value: object) -> None:
    command = ("--engine", "ssh", "-w", "n1", "--kdoctor", ssh, "--reports", "r")
    run(*command, code=0)
    Path("r/nodes/n1.json").unlink()
    Path("calls").unlink()
    record = Path("r/fleet-run.json")
    record.write_text(json.dumps(json.loads(record.read_text()) | {key: value}))
    with pytest.raises(UsageError, match="not a name of a node" if value == ["../n1"] else "has other"):
        run(*command, "--resume", code=2)
    assert not Path("calls").exists()
    assert not Path("pwned").exists()


def test_progress_is_a_line_for_each_node(ssh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(style, "as_json", False)
    command = ["run", "--engine", "ssh", "-w", "n[1,4]", "--kdoctor", str(ssh), "--log-format", "json"]
    done = CliRunner().invoke(app, command)
    events = [json.loads(line) for line in done.stderr.splitlines()]
    nodes = {event["node"]: event for event in events if event["event"] == "node"}
    assert nodes["n1"]["verdict"] == "pass"
    assert "cannot be started" in nodes["n4"]["reason"]
    assert len(list(Path().glob("kdoctor-fleet-*/nodes/n1.json"))) == 1
