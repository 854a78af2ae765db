"""`kdoctor fleet run --engine ray` on four raylets of this machine."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from helpers.command import kdoctor
from helpers.kdoctor_fleet.connecting_nodes import write_connecting_nodes
from helpers.kdoctor_fleet.faulty_nodes import NODES, assert_judged, assert_nothing_runs, interrupt, write_nodes

pytestmark = [pytest.mark.fleet, pytest.mark.skipif(find_spec("ray") is None, reason="not installed: ray")]

CLUSTER = """\
import json, sys
from ray.cluster_utils import Cluster
cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
nodes = [cluster.add_node(num_cpus=1) for _ in range(3)]
print(json.dumps([cluster.address, cluster.head_node.node_id, *(node.node_id for node in nodes)]), flush=True)
while line := sys.stdin.readline():
    cluster.remove_node(nodes[-1], allow_graceful=False)
    print("removed", flush=True)
cluster.shutdown()
"""


class Cluster:
    """Four raylets, in a process that owns them."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", CLUSTER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"},
            start_new_session=True,
        )
        assert self.process.stdout
        line = next(line for line in self.process.stdout if line.startswith("["))
        self.address, *ids = json.loads(line)
        host = os.uname().nodename
        self.nodes = [f"{host}-{node[:8]}" for node in ids]

    def lose_the_last_node(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        next(line for line in self.process.stdout if line == "removed\n")

    def stop(self) -> None:
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.close()
        self.process.wait(timeout=120)
        self.process.stdout.close()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    try:
        yield cluster
    finally:
        cluster.stop()


def run(cluster: Cluster, program: Path, *arguments: str) -> dict[str, object]:
    common = ("--engine", "ray", f"--engine-option=address={cluster.address}", "--kdoctor", program, "-f", "json")
    done = kdoctor("fleet", "run", *common, *arguments, cwd=program.parent, timeout_s=300)
    assert done.stdout, done.stderr
    document: dict[str, object] = json.loads(done.stdout)
    return document


@pytest.mark.parametrize(
    "kinds",
    [
        ("healthy", "hanging", "dying", "flood"),
        ("healthy", "garbage", "absent", "older"),
        ("healthy", "healthy", "keras", "clock"),
        ("healthy", "full", "usage", "noisy"),
        ("healthy", "impostor", "healthy", "lines"),
    ],
)
def test_faults_are_named(kinds: tuple[str, ...], cluster: Cluster, tmp_path: Path) -> None:
    names = dict(zip(cluster.nodes, kinds, strict=True))
    assert set(kinds) <= set(NODES)
    document = run(cluster, write_nodes(tmp_path, names), "--node-timeout", "15")
    assert_judged(document, names)


def test_worker_of_ray_that_crashes_in_mid_task_differs_from_a_node_that_dies(cluster: Cluster, tmp_path: Path) -> None:
    program = write_nodes(tmp_path, dict.fromkeys(cluster.nodes, "healthy"))
    # Its grandparent is the worker: worker, shell that ends it with its input, timeout, this.
    crash = "timeout=$(ps -o ppid= $$); shell=$(ps -o ppid= $timeout); kill -KILL $(ps -o ppid= $shell); sleep 60"
    (tmp_path / f"{cluster.nodes[1]}.sh").write_text(crash)
    document = run(cluster, program, "--node-timeout", "30")
    nodes = {node["name"]: node for node in document["nodes"]}  # type: ignore[attr-defined]
    assert [nodes[name]["state"] for name in cluster.nodes] == ["passed", "silent", "passed", "passed"]
    assert "worker of Ray crashed" in nodes[cluster.nodes[1]]["reason"]


def test_pairs_over_ray_name_the_node_that_hangs(cluster: Cluster, tmp_path: Path) -> None:
    program = write_connecting_nodes(tmp_path, cluster.nodes, hangs=cluster.nodes[2:3])
    document = run(cluster, program, "--pairs", "--node-timeout", "20")
    nodes = {node["name"]: node for node in document["nodes"]}  # type: ignore[attr-defined]
    assert [nodes[name]["state"] for name in cluster.nodes] == ["passed", "passed", "failed", "passed"]
    assert {problem["check"] for problem in nodes[cluster.nodes[2]]["problems"]} == {"cluster.pairs"}


def test_interrupted_controller_leaves_no_task_and_resumes(cluster: Cluster, tmp_path: Path) -> None:
    names = dict(zip(cluster.nodes, ("healthy", "hanging", "healthy", "hanging"), strict=True))
    program = write_nodes(tmp_path, names)
    address = f"--engine-option=address={cluster.address}"
    command = ("--engine", "ray", address, "--kdoctor", program)
    interrupted = interrupt(tmp_path, *command)
    assert interrupted.returncode == 130, interrupted.stderr
    assert_nothing_runs(program)
    write_nodes(tmp_path, dict.fromkeys(cluster.nodes, "healthy") | {cluster.nodes[0]: "absent"})
    again = ("--resume", "--reports", "r", "-f", "json")
    done = kdoctor("fleet", "run", *command, *again, cwd=tmp_path, timeout_s=300)
    assert json.loads(done.stdout)["passing"] == sorted(cluster.nodes), done.stderr  # the first was not asked again


def test_lost_node_differs_from_a_hang(tmp_path: Path) -> None:
    cluster = Cluster()  # the other tests need all of theirs
    try:
        program = write_nodes(tmp_path, dict.fromkeys(cluster.nodes, "healthy"))
        cluster.lose_the_last_node()
        document = run(cluster, program, "--nodes", ",".join(cluster.nodes), "--node-timeout", "30")
    finally:
        cluster.stop()
    nodes = {node["name"]: node for node in document["nodes"]}  # type: ignore[attr-defined]
    assert [nodes[name]["state"] for name in cluster.nodes] == ["passed", "passed", "passed", "silent"]
    assert "no such node" in nodes[cluster.nodes[-1]]["reason"] or "left the Ray" in nodes[cluster.nodes[-1]]["reason"]
