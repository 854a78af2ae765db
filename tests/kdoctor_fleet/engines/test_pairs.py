"""`kdoctor fleet run --pairs` over ssh: real trainings between network namespaces, and workers that only connect."""

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from helpers.command import kdoctor
from helpers.kdoctor_fleet.connecting_nodes import write_connecting_nodes
from helpers.kdoctor_fleet.faulty_nodes import write_nodes
from helpers.kdoctor_fleet.network_namespaces import NamespaceNodes, may_create
from helpers.kdoctor_fleet.sshd import Sshd

pytestmark = [
    pytest.mark.fleet,
    pytest.mark.skipif(not may_create(), reason="network namespaces with iptables and sshd need root and the programs"),
]

NODES = ("n1", "n2", "n3", "n4")
PORTS = "23000:24999"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NamespaceNodes]:
    servers = NamespaceNodes(tmp_path_factory.mktemp("sshd"), NODES)
    try:
        servers.start()
        yield servers
    finally:
        servers.stop()


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """Connects in the place of trainings."""
    return write_connecting_nodes(tmp_path, NODES)


def run(servers: Sshd, program: str | Path, folder: Path, *options: str) -> Any:
    common = ("--engine", "ssh", f"--engine-option={servers.option}", "--kdoctor", program, "--reports", "r", "--pairs")
    done = kdoctor("fleet", "run", *common, "-w", "n[1-4]", "-f", "json", *options, cwd=folder, timeout_s=1200)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def failing(document: Any) -> dict[str, list[str]]:
    """The nodes that did not pass, with the checks that name them."""
    return {
        node["name"]: sorted({problem["check"] for problem in node["problems"] if problem["severity"] == "error"})
        for node in document["nodes"]
        if node["state"] != "passed"
    }


FAST = ("--node-timeout", "20")


def test_healthy_nodes_pass_in_pairs_and_together(servers: NamespaceNodes, program: Path) -> None:
    document = run(servers, program, program.parent, *FAST)
    assert failing(document) == {}
    record = json.loads((program.parent / "r" / "fleet-pairs.json").read_text())
    assert [len(entry["nodes"]) for entry in record["pairs"]] == [2, 2]
    assert [len(entry["nodes"]) for entry in record["groups"]] == [4]


def test_node_with_a_blocked_port_is_named_and_no_other(servers: NamespaceNodes, program: Path) -> None:
    servers.drop("n3", PORTS)
    try:
        document = run(servers, program, program.parent, *FAST)
    finally:
        servers.accept("n3", PORTS)
    assert failing(document) == {"n3": ["cluster.pairs"]}
    assert document["passing"] == ["n1", "n2", "n4"]


def test_bad_link_is_found_by_the_full_matrix(servers: NamespaceNodes, program: Path) -> None:
    servers.drop("n2", PORTS, from_host="n4")
    servers.drop("n4", PORTS, from_host="n2")
    try:
        document = run(servers, program, program.parent, *FAST, "--full-matrix")
    finally:
        servers.accept("n2", PORTS, from_host="n4")
        servers.accept("n4", PORTS, from_host="n2")
    (left_out,) = failing(document)
    assert left_out in ("n2", "n4")
    assert failing(document)[left_out] == ["cluster.links"]
    record = json.loads((program.parent / "r" / "fleet-pairs.json").read_text())
    assert len(record["pairs"]) == 6
    assert {tuple(sorted(entry["nodes"])) for entry in record["pairs"] if entry["outcome"] == "failed"} == {
        ("n2", "n4")
    }


def test_nodes_that_hang_only_together_are_bisected(servers: NamespaceNodes, program: Path) -> None:
    (program.parent / "most").write_text("3")
    document = run(servers, program, program.parent, *FAST)
    assert set(failing(document)) == set(NODES)
    assert all(checks == ["cluster.together"] for checks in failing(document).values())
    record = json.loads((program.parent / "r" / "fleet-pairs.json").read_text())
    assert [(len(entry["nodes"]), entry["outcome"]) for entry in record["groups"]] == [
        (4, "failed"),
        (2, "trained"),
        (2, "trained"),
    ]


def test_real_trainings_name_the_blocked_node_with_phase_and_stacks(servers: NamespaceNodes, tmp_path: Path) -> None:
    program = write_nodes(tmp_path, dict.fromkeys(NODES, "healthy"))
    trains = shlex.join((sys.executable, "-m", "kdoctor"))
    program.write_text(
        program.read_text().replace("#!/bin/sh\n", f'#!/bin/sh\n[ "$1" = smoke ] && exec {trains} "$@"\n')
    )
    servers.drop("n3", PORTS)
    options = ("--pair-framework", "tensorflow", "--pair-timeout", "60", "--", "--replicas", "1")
    try:
        document = run(servers, program, tmp_path, *options)
    finally:
        servers.accept("n3", PORTS)
    record = json.loads((tmp_path / "r" / "fleet-pairs.json").read_text())
    assert failing(document) == {"n3": ["cluster.pairs"]}, record
    assert [(entry["nodes"], entry["outcome"]) for entry in record["groups"]] == [(["n1", "n2", "n4"], "trained")]
    hung = [worker for entry in record["pairs"] if entry["outcome"] == "failed" for worker in entry["workers"]]
    # Where it hangs depends on who connects to whom: in the strategy, or when data is distributed.
    assert {worker["phase"] for worker in hung if worker["phase"]} <= {"strategy", "data"}
    assert any("across_nodes.py" in (worker["stacks"] or "") for worker in hung), hung
    assert all(entry["gbs"] > 0 for entry in record["pairs"] if entry["outcome"] == "trained")


def test_real_trainings_of_both_frameworks_pass(tmp_path: Path) -> None:
    """On the loopback interface, because JAX finds CPU workers by the host's name, which namespaces share."""
    pytest.importorskip("jax")
    program = write_nodes(tmp_path, dict.fromkeys(NODES, "healthy"))
    trains = shlex.join((sys.executable, "-m", "kdoctor"))
    program.write_text(
        program.read_text().replace("#!/bin/sh\n", f'#!/bin/sh\n[ "$1" = smoke ] && exec {trains} "$@"\n')
    )
    servers = Sshd(tmp_path, NODES)
    try:
        servers.start()
        document = run(servers, program, tmp_path, "--pair-timeout", "240", "-w", "n[1-2]", "--", "--replicas", "1")
    finally:
        servers.stop()
    assert failing(document) == {}, (tmp_path / "r" / "fleet-pairs.json").read_text()
    assert document["passing"] == ["n1", "n2"]
