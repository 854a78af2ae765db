"""Constructed fleets with planted differences: exactly these are named."""

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.cases import cases
from helpers.kdoctor_fleet.fleets import Document, Plant, fact, fleet_of, merged, names_of, replaced, report_of, slower
from helpers.kdoctor_fleet.rdma import two_hosts
from helpers.reports import result
from kdoctor.facts import Facts, Gpu, Gpus
from kdoctor.model import Severity, Status
from kdoctor_fleet.facts import JobHosts, NodeState
from kdoctor_fleet.merge import _related, _required
from kdoctor_fleet.names import fold
from kdoctor_fleet.report import FleetReport

PLANTS: dict[str, Plant] = {
    "cluster.cuda-libraries": fact("libraries", "cudnn", "9.1.0"),
    "cluster.driver": fact("driver", "version", "535.161.08"),
    "cluster.environment": fact("environment", "NCCL_ALGO", "Ring"),
    "cluster.frameworks": fact("packages", "keras", "3.6.0"),
    "cluster.gpus": fact("gpus", "count", "7"),
    "cluster.interpreter": fact("python", "version", "3.12.1"),
    "cluster.network": fact("network", "mlx5_0/1.gbit-per-second", "200"),
    "cluster.packages": fact("packages", "pandas", "2.0.0"),
    "cluster.system": fact("host", "kernel", "5.15.0"),
    "cluster.topology": fact("topology", "nvlinks.active", "100"),
    "cluster.training-speed": slower(4.0),
}


@cache
def lost_gpu() -> Document:
    """The report of a node whose GPU 3 does not respond."""

    def lose(facts: Facts) -> Facts:
        gpus = facts[Gpus]
        assert isinstance(gpus, Gpus)
        devices = tuple(Gpu(index=3, errors={"handle": "GpuIsLost"}) if gpu.index == 3 else gpu for gpu in gpus.devices)
        return {**facts, Gpus: replace(gpus, devices=devices)}

    return report_of(lose)


def problems(shown: FleetReport) -> dict[str, str]:
    """Check to the nodes of its problems."""
    return {problem.check: ",".join(problem.subjects) for cause in shown.causes for problem in cause.problems}


def states(shown: FleetReport, state: NodeState) -> list[str]:
    return [node.name for node in shown.nodes if node.state is state]


@pytest.mark.parametrize("number", [2, 3, 64])
def test_equal_nodes_pass(number: int) -> None:
    shown = merged(fleet_of(number))
    assert problems(shown) == {}
    assert shown.verdict.exit_code == 0
    assert shown.passing == tuple(names_of(number))
    assert [category.mark.value for category in shown.categories if category.mark.value == "error"] == []


def test_planted_differences_are_named_and_no_others() -> None:
    planted = {index * 5 + 1: [plant] for index, plant in enumerate(PLANTS.values())}
    shown = merged(fleet_of(64, planted))
    assert problems(shown) == {check: f"node{index * 5 + 1:04}" for index, check in enumerate(PLANTS)}
    errors = {check for cause in shown.causes if cause.severity is Severity.ERROR for check in cause.checks}
    failed = [f"node{index * 5 + 1:04}" for index, check in enumerate(PLANTS) if check in errors]
    assert states(shown, NodeState.FAILED) == failed
    assert len(shown.passing) == 64 - len(failed)
    assert shown.verdict.exit_code == 1


def test_odd_one_of_three_is_named_and_of_two_both_are() -> None:
    plant = {2: [PLANTS["cluster.frameworks"]]}
    assert problems(merged(fleet_of(3, plant))) == {"cluster.frameworks": "node0002"}
    assert problems(merged(fleet_of(2, plant))) == {"cluster.frameworks": "node[0001-0002]"}
    assert states(merged(fleet_of(2, plant)), NodeState.PASSED) == []


def test_thousand_nodes_with_a_split_and_one_odd_node() -> None:
    half = {index: [fact("packages", "keras", "3.14.0")] for index in range(1, 501)}
    shown = merged(fleet_of(1000, {**half, 777: [fact("libraries", "nccl", "2.20.5")]}))
    assert problems(shown) == {"cluster.frameworks": "node[0001-1000]", "cluster.cuda-libraries": "node0777"}
    assert shown.passing == ()


def test_problem_of_nodes_is_folded_and_drains_them() -> None:
    found = fleet_of(9, {index: [replaced(lost_gpu())] for index in (3, 5, 6, 9)})
    shown = merged(found, names=tuple(names_of(8)))
    cause = next(cause for cause in shown.causes if "gpu.responding" in cause.checks)
    assert cause.scope == "node"
    assert {subject for problem in cause.problems for subject in problem.subjects} == {"node[0003,0005-0006,0009]"}
    assert shown.failing == ("node0003", "node0005", "node0006")  # the ninth was not expected
    slurm = next(item for item in shown.exclusions if item.engine == "slurm")
    assert slurm.leave_out == ("sbatch '--exclude=node[0003,0005-0006]' job.sh",)
    assert slurm.drain[0].startswith(
        "sudo scontrol update 'nodename=node[0003,0005-0006]' state=drain 'reason=kdoctor: "
    )
    assert any(step.commands == slurm.leave_out for step in shown.plan)


@pytest.mark.parametrize(("min_healthy", "enough"), [("3", True), ("4", False), (None, True)])
def test_way_to_start_without_nodes_is_offered_where_enough_are_left(min_healthy: str | None, *, enough: bool) -> None:
    shown = merged(fleet_of(5, {index: [replaced(lost_gpu())] for index in (3, 4)}), min_healthy=min_healthy)
    assert any(step.summary.startswith("Train on the 3 nodes that passed") for step in shown.plan) is enough


def test_split_without_a_majority_drains_no_node() -> None:
    planted = {index: [fact("driver", "version", "535.161.08")] for index in (1, 2)}
    report = merged(fleet_of(4, planted))
    assert [cause.scope for cause in report.causes] == ["job"]
    assert all(not item.drain for item in report.exclusions)
    assert not report.passing


def test_problem_of_the_job_drains_nothing() -> None:
    shown = merged(fleet_of(4, {2: [PLANTS["cluster.frameworks"]]}))
    assert [cause.scope for cause in shown.causes] == ["job"]
    assert [item.drain for item in shown.exclusions] == [(), (), ()]
    assert shown.failing == ("node0002",)


@cache
def with_host(*, resolved: bool) -> Document:
    """The report of a node that found a host of its TF_CONFIG, or did not."""
    return report_of(lambda facts: {**facts, JobHosts: two_hosts(other={"resolved": resolved})})


def naming(*hosts: str) -> Plant:
    """A TF_CONFIG with other workers; the node's place among them is that of its name."""

    def plant(document: Document) -> None:
        workers = [f"{host}:2222" for host in hosts]
        place = {"type": "worker", "index": int(document["node"]["name"][-1]) - 1}
        document["node"] |= {"tf_config": json.dumps({"cluster": {"worker": workers}, "task": place})}

    return plant


@pytest.mark.parametrize(("odd", "scope"), [("n4", "node"), ("typo", "job")])
def test_wrong_name_in_one_tf_config_drains_no_node(odd: str, scope: str) -> None:
    planted = {
        index: [replaced(with_host(resolved=index < 4)), naming("n1", "n2", "n3", odd if index == 4 else "n4")]
        for index in (1, 2, 3, 4)
    }
    shown = merged(fleet_of(4, planted))
    (cause,) = (cause for cause in shown.causes if "network.hosts-resolve" in cause.checks)
    assert cause.scope == scope
    slurm = next(item for item in shown.exclusions if item.engine == "slurm")
    assert bool(slurm.drain) == (scope == "node")


def test_silent_nodes_are_unknown() -> None:
    shown = merged(fleet_of(3), names=tuple(names_of(5)))
    assert states(shown, NodeState.SILENT) == ["node0004", "node0005"]
    assert shown.verdict.exit_code == 3


def test_unexpected_node_is_not_used() -> None:
    shown = merged(fleet_of(3), names=tuple(names_of(2)))
    assert shown.passing == ("node0001", "node0002")
    assert shown.verdict.exit_code == 0
    assert shown.target == "2 nodes (2 passed): node[0001-0002]; not expected: node0003"


@cases(({}, 3), ({"names": ("node0001", "node0002")}, 0), ({"min_healthy": "2"}, 0), ({"min_healthy": "80%"}, 3))
def test_file_that_is_not_read_may_be_of_another_node(expectation: dict[str, Any], exit_code: int) -> None:
    assert merged(fleet_of(2), unread=["cut.json"], **expectation).verdict.exit_code == exit_code


def test_file_that_is_not_read_replaces_no_expected_node_that_failed() -> None:
    failing = fleet_of(3, {2: [replaced(lost_gpu())]})
    assert merged(failing, unread=["cut.json"], names=tuple(names_of(3))).verdict.exit_code == 1


def test_silent_nodes_may_be_missing_under_a_threshold() -> None:
    assert merged(fleet_of(3), names=tuple(names_of(4)), min_healthy="3").verdict.exit_code == 0
    assert merged(fleet_of(3), names=tuple(names_of(9)), min_healthy="90%").verdict.exit_code == 3


def test_report_of_an_older_kdoctor_is_judged_and_not_compared() -> None:
    def age(document: Document) -> None:
        document["facts"] = {}

    shown = merged(fleet_of(4, {2: [age]}))
    assert states(shown, NodeState.UNKNOWN) == ["node0002"]
    assert states(shown, NodeState.FAILED) == []
    assert shown.verdict.exit_code == 3


def test_failed_report_without_causes_names_the_failed_checks() -> None:
    def strip(document: Document) -> None:
        replaced(lost_gpu())(document)
        document["causes"] = []

    shown = merged(fleet_of(3, {2: [strip]}))
    assert problems(shown)["gpu.responding"] == "node0002"


@pytest.mark.parametrize("stricter", [1, 2, 3])
def test_severity_of_a_check_is_the_worst_that_a_node_gives_it(stricter: int) -> None:
    def fail(severity: str) -> Plant:
        def plant(document: Document) -> None:
            first, *others = document["results"]
            document["results"] = [first | {"id": "zz.x", "status": "fail", "severity": severity}, *others]

        return plant

    severities = {index: "error" if index == stricter else "info" for index in (1, 2, 3)}
    shown = merged(fleet_of(3, {index: [fail(severity)] for index, severity in severities.items()}))
    assert [cause.severity for cause in shown.causes if "zz.x" in cause.checks] == [Severity.ERROR]
    assert shown.passing == ()


def test_difference_fails_a_node_that_is_unknown_by_itself() -> None:
    def interrupt(document: Document) -> None:
        document["interrupted"] = True

    shown = merged(fleet_of(3, {2: [interrupt, PLANTS["cluster.frameworks"]]}))
    assert states(shown, NodeState.FAILED) == ["node0002"]


def test_warning_about_a_node_does_not_drain_it() -> None:
    shown = merged(fleet_of(4, {2: [PLANTS["cluster.frameworks"], PLANTS["cluster.training-speed"]]}))
    assert {cause.severity for cause in shown.causes if cause.scope == "node"} == {Severity.WARNING}
    assert [item.drain for item in shown.exclusions] == [(), (), ()]


def test_unknown_that_a_checklist_accepts_is_none_of_the_fleet() -> None:
    def accept(document: Document) -> None:
        line = {"id": "zz.x", "title": "t", "status": "unknown", "severity": "error", "accepted": "agreed"}
        document["results"] = [*document["results"], line]
        document["counts"] = document["counts"] | {"unknown": 1}

    shown = merged(fleet_of(2, {1: [accept], 2: [accept]}))
    assert {result.id: result.status for result in shown.results}["zz.x"] is Status.SKIP
    assert shown.verdict.exit_code == 0


def test_step_times_of_a_training_that_failed_are_not_compared() -> None:
    def fail(document: Document) -> None:
        PLANTS["cluster.training-speed"](document)
        document["trainings"] = [training | {"outcome": "raised"} for training in document["trainings"]]

    assert "cluster.training-speed" not in problems(merged(fleet_of(5, {2: [fail]})))


def test_checks_that_a_second_cause_kept_from_being_judged_are_explained_by_it() -> None:
    def plant(document: Document) -> None:
        replaced(lost_gpu())(document)
        (cause,) = document["causes"]
        document["causes"] = [cause | {"unjudged": []}, cause | {"checks": ["host.disk"]}]

    shown = merged(fleet_of(2, {1: [plant]}))
    explained = {item.explained_by for result in shown.results for item in result.unjudged}
    assert ("host.disk",) in explained


@pytest.mark.parametrize(("others", "share"), [((), ""), ((1,), " (2 of 3 nodes)")])
def test_family_says_how_many_nodes_say_the_same(others: tuple[int, ...], share: str) -> None:
    def other(document: Document) -> None:
        document["categories"] = [
            line | {"text": "4 CPUs"} if line["family"] == "host" else line for line in document["categories"]
        ]

    (usual,) = (line["text"] for line in fleet_of(1)[0]["categories"] if line["family"] == "host")
    shown = merged(fleet_of(3, {index: [other] for index in others}))
    assert [line.text for line in shown.categories if line.family == "host"] == [f"{usual}{share}"]


def test_interrupted_run_is_unknown() -> None:
    def interrupt(document: Document) -> None:
        document["interrupted"] = True

    assert states(merged(fleet_of(3, {1: [interrupt]})), NodeState.UNKNOWN) == ["node0001"]


def test_engine_is_that_of_the_launcher_or_the_named_one() -> None:
    assert merged(fleet_of(2)).engine == "slurm"
    assert merged(fleet_of(2), engine="kubernetes").engine == "kubernetes"


def test_problem_explains_those_of_the_same_nodes_only() -> None:
    known = frozenset({"a", "b"})
    related = _related(known)
    both, one, none = fold(["a", "b"]), fold(["a"]), "TF_CONFIG"
    assert [related(both, one), related(one, one), related(one, none), related(none, none)] == [True] * 4
    assert [related(one, both), related(one, fold(["b"])), related(none, one)] == [False] * 3


@cases(
    ({}, True), ({"severity": Severity.WARNING}, False), ({"accepted": "agreed"}, False), ({"family": "host"}, False)
)
def test_only_comparisons_whose_failure_is_an_error_must_be_possible(
    changes: dict[str, Any], *, required: bool
) -> None:
    open_results = [result("cluster.driver", Status.UNKNOWN, **changes)]
    assert bool([*_required(open_results)]) is required


STATES: dict[str, dict[str, Any]] = {
    "failed": {"status": "fail"},
    "unknown": {"status": "unknown"},
    "accepted by an option": {"status": "unknown", "accepted": "--allow-unknown"},
    "accepted by the checklist": {"status": "unknown", "accepted": "agreed"},
    "skipped": {"status": "skip"},
    "left out": {"status": "skip", "left_out": True},
    "failed and mild": {"status": "fail", "severity": "info"},
}
ERRORS = ("gpu.count-expected", "driver.loaded", "gpu.free", "topology.nvlink")


def with_results(changes: Mapping[str, str], verdict: str) -> Plant:
    """A report in which some results differ, whatever its verdict says; "gone" removes one."""

    def plant(document: Document) -> None:
        kept = [line for line in document["results"] if changes.get(line["id"]) != "gone"]
        document["results"] = [line | STATES.get(changes.get(line["id"], ""), {}) for line in kept]
        document["verdict"] = verdict

    return plant


def test_options_that_left_out_a_check_are_named() -> None:
    def plant(document: Document) -> None:
        with_results({"gpu.free": "left out"}, "pass")(document)
        document["checklist"] = {**document["checklist"], "options": "--skip gpu.free"}

    (node,) = merged(fleet_of(1, {1: [plant]})).nodes
    assert node.reason.endswith(" left out by --skip gpu.free")


REPORTS = st.tuples(
    st.dictionaries(st.sampled_from(ERRORS), st.sampled_from([*STATES, "gone"]), max_size=2),
    st.sampled_from(["pass", "pass", "unknown", "fail"]),
)


@settings(max_examples=60, deadline=None)
@given(st.lists(REPORTS, min_size=1, max_size=3))
def test_no_fleet_is_ready_without_evidence_for_each_error_on_each_node(
    reports: list[tuple[Mapping[str, str], str]],
) -> None:
    documents = fleet_of(len(reports), {index: [with_results(*each)] for index, each in enumerate(reports, 1)})
    if merged(documents).verdict.exit_code == 0:
        lines = [line for document in documents for line in document["results"]]
        errors = {line["id"] for line in lines if line["severity"] == "error"} & set(ERRORS)
        for document in documents:
            found = {line["id"]: line for line in document["results"]}
            agreed = {name for name, line in found.items() if line["accepted"] == "agreed"}
            evident = {name for name, line in found.items() if line["status"] in ("pass", "skip")}
            assert document["verdict"] == "pass"
            assert errors <= evident | agreed
            assert not any(found[name]["left_out"] for name in errors)
