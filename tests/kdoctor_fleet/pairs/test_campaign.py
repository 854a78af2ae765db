"""Pairs and groups through an engine whose nodes are functions."""

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from helpers.cases import cases
from helpers.kdoctor_fleet.fleets import healthy, names_of
from kdoctor.errors import UsageError
from kdoctor.probes.process.readers import Take
from kdoctor_fleet.commands.pairs import passed_on
from kdoctor_fleet.exclusion import Engine as Words
from kdoctor_fleet.launch.engine import Ended
from kdoctor_fleet.pairs.record import FILE, FleetPairs, pair_tests, read_pairs, run_pairs, write_pairs
from kdoctor_fleet.pairs.run import Runner, conclude_group
from kdoctor_fleet.pairs.schedule import WorkerOutcome

NODES = tuple(names_of(6))

BUSY = {
    "id": "smoke.across-nodes", "title": "", "status": "skip", "severity": "error",
    "reason": "training custom-loop: port 23000 cannot be used: Address already in use",
}  # fmt: skip


class Nodes:
    """Workers that train unless their node or their link is broken."""

    name = "nodes"
    words: Words = "hosts"

    def __init__(self, bad: Sequence[str] = (), cut: frozenset[str] = frozenset(), busy: int = 0) -> None:
        self.bad, self.cut, self.busy = set(bad), cut, busy
        self.addresses: list[str] = []
        self.most = self.open = 0
        self._lock = threading.Lock()

    def nodes(self, environ: Mapping[str, str]) -> str:
        return ""

    def address(self, node: str) -> str:
        return f"{node}.example"

    def run(self, node: str, command: Sequence[str], take: Take, deadline_s: float) -> Ended:
        assert deadline_s <= 2 * 60 + 120  # what its trainings take
        with self._lock:
            self.open += 1
            self.most = max(self.most, self.open)
        variables = dict(word.split("=", 1) for word in command[1:3])
        config = json.loads(variables["TF_CONFIG"])
        addresses = config["cluster"]["worker"]
        assert addresses[config["task"]["index"]].startswith(f"{node}.example:")
        names = {address.partition(".")[0] for address in addresses}
        with self._lock:
            self.addresses += [addresses[config["task"]["index"]]]
            self.open -= 1
            busy, self.busy = self.busy > 0, self.busy - 1
        if self.bad & names or (self.cut <= names and self.cut):
            return Ended(exit_code=None, problem="", timed_out=True)
        document = healthy(node) | {"verdict": "pass"}
        if busy:
            document["results"] = [*document["results"], BUSY]
        take(json.dumps(document, indent=2).encode())
        return Ended(exit_code=0, problem="")

    def interrupt(self) -> None:
        raise AssertionError("a finished step must leave the engine usable")

    def end(self) -> None:
        raise AssertionError("a finished step must leave the engine usable")


def campaign(engine: Nodes, *, full_matrix: bool = False, fan_out: int = 64) -> FleetPairs:
    runner = Runner(
        engine=engine, program=["kdoctor"], options=["--replicas", "1"], address=engine.address, port=23000,
        frameworks=("tensorflow", "jax"), limit_s=60, node_s=600, fan_out=fan_out,
    )  # fmt: skip
    kept: list[FleetPairs] = []
    empty = FleetPairs(nodes=NODES, started_at="2025-01-02T03:04:05+00:00", full_matrix=full_matrix)
    found = run_pairs(empty, runner, kept.append)
    assert kept[-1] == found
    return found


def test_healthy_nodes_train_in_pairs_and_together() -> None:
    engine = Nodes()
    found = pair_tests(campaign(engine))
    assert (found.proven, found.pairs, found.failed) == (NODES, 3, 0)
    assert found.together
    assert (found.together.nodes, found.together.outcome) == (NODES, "trained")
    assert len(set(engine.addresses)) == len(engine.addresses)  # no port twice


def test_bad_node_is_left_out_of_the_group() -> None:
    found = pair_tests(campaign(Nodes(bad=NODES[2:3])))
    assert [node.name for node in found.bad] == [NODES[2]]
    assert "no report within" in found.bad[0].problem
    assert found.together
    assert NODES[2] not in found.together.nodes


def test_full_matrix_finds_a_link() -> None:
    found = pair_tests(campaign(Nodes(cut=frozenset(NODES[1:3])), full_matrix=True))
    assert found.pairs == 15
    assert [set(link.nodes) for link in found.links] == [set(NODES[1:3])]
    assert found.together
    assert len(found.together.nodes) == 5
    assert len(campaign(Nodes(cut=frozenset(NODES[1:3]))).groups) > 1


def test_worker_whose_port_is_in_use_is_not_a_test_and_its_pair_is_tried_again() -> None:
    record = campaign(Nodes(busy=1))
    assert [entry.outcome for entry in record.pairs].count("untested") == 1
    assert pair_tests(record).proven == NODES


def test_fan_out_limits_pairs_but_not_the_group() -> None:
    engine = Nodes()
    campaign(engine, fan_out=2)
    assert engine.most <= 6


def worker(name: str, verdict: str = "pass", **changes: Any) -> WorkerOutcome:
    return WorkerOutcome(node=name, verdict=verdict, **changes)


def test_error_is_said_before_those_who_waited() -> None:
    waits = worker("a", verdict="fail", problem="hangs in phase strategy", hung=True)
    raises = worker("b", verdict="fail", problem="raises OSError")
    found = conclude_group(("a", "b"), [waits, raises])
    assert (found.outcome, found.hung) == ("failed", False)
    assert found.problem.index("raises OSError") < found.problem.index("hangs")
    assert conclude_group(("a", "c"), [waits, worker("c", verdict="", problem="no report", hung=True)]).hung


def test_slowest_worker_is_the_speed_of_a_pair() -> None:
    found = conclude_group(("a", "b"), [worker("a", gbs=11.0), worker("b", gbs=9.0)])
    assert (found.gbs, found.hung) == (9.0, False)


def test_record_is_read_back_and_bad_names_are_refused(tmp_path: Path) -> None:
    record = campaign(Nodes())
    write_pairs(tmp_path, record)
    assert read_pairs(tmp_path) == record
    (tmp_path / FILE).write_text(record.to_json().replace(NODES[0], "../../etc"))
    with pytest.raises(UsageError, match="not a name of a node"):
        read_pairs(tmp_path)
    (tmp_path / FILE).write_text("{}")
    with pytest.raises(UsageError, match=FILE):
        read_pairs(tmp_path)


@cases(("pairs", NODES[:1]), ("pairs", NODES[:3]), ("pairs", [NODES[0]] * 2), ("groups", NODES[:1]))
def test_trainings_of_the_wrong_number_of_nodes_are_refused(tmp_path: Path, part: str, nodes: Sequence[str]) -> None:
    entry = replace(campaign(Nodes()).pairs[0], nodes=tuple(nodes))
    write_pairs(tmp_path, campaign(Nodes()).model_copy(update={part: (entry,)}))
    with pytest.raises(UsageError, match=f"{FILE}: {part}"):
        read_pairs(tmp_path)


def test_options_of_devices_are_passed_on() -> None:
    options = ["--no-smoke", "--python", "/opt/job", "--replicas=1", "--checklist", "x.yaml"]
    assert passed_on(options) == ["--python", "/opt/job", "--replicas=1"]
