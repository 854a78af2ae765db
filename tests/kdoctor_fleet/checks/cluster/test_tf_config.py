from dataclasses import replace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.kdoctor_fleet.fleets import fleet
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.cluster.tf_config import tf_config
from kdoctor_fleet.facts import JobConfig

CLUSTER: dict[str, tuple[str, ...]] = {"worker": ("node0001:2222", "node0002:2222", "node0003:2222")}


def job(task: str | None, cluster: dict[str, tuple[str, ...]] = CLUSTER, **changes: Any) -> dict[str, Any]:
    return {"job": JobConfig(cluster=cluster, task=task, **changes)}


def test_one_cluster_with_other_tasks_passes() -> None:
    assert compute_check(tf_config, fleet(3)).status is Status.PASS


@cases(
    ({"node0002": job("worker 0")}, {"node[0001-0002]"}),
    ({"node0002": job("worker 3")}, {"node0002"}),
    ({"node0002": job(None)}, {"node0002"}),
    ({"node0002": job("worker 1", {"worker": ("node0001:2222", "node0002:2222")})}, {"node0002"}),
    ({"node0002": {"job": None}}, {"node0002"}),
    ({"node0002": {"job": JobConfig(malformed="it is not JSON")}}, {"node0002"}),
    (
        {f"node000{number}": job(f"worker {number - 1}", {"worker": ("a:1", "a:1", "b:1")}) for number in (1, 2, 3)},
        {"node[0001-0003]"},
    ),
)
def test_planted_mistake_is_named(change: dict[str, Any], subjects: set[str]) -> None:
    result = compute_check(tf_config, fleet(3, **change))
    assert result.status is Status.FAIL
    assert {judged.finding.subject for judged in result.findings} == subjects


def test_two_clusters_without_a_majority_name_all_nodes() -> None:
    other: dict[str, tuple[str, ...]] = {"worker": ("x:1", "node0002:2222")}
    result = compute_check(tf_config, fleet(2, node0002=job("worker 1", other)))
    assert [judged.finding.subject for judged in result.findings] == ["node[0001-0002]"]
    assert result.findings[0].finding.observed.endswith(" (no majority)")
    most = compute_check(tf_config, fleet(3, node0002=job("worker 1", other)))
    assert most.findings[0].finding.observed == "TF_CONFIG names another cluster than on node[0001,0003]"


@pytest.mark.parametrize(("task", "named"), [(None, "none"), ("worker 3", "worker 3")])
def test_task_that_is_not_in_the_cluster_is_named(task: str | None, named: str) -> None:
    (found,) = compute_check(tf_config, fleet(3, node0002=job(task))).findings
    assert found.finding.observed == f"its task ({named}) is not in the cluster of its TF_CONFIG"


def test_task_that_no_node_has_is_unknown() -> None:
    three = fleet(3)
    result = compute_check(tf_config, replace(three, nodes=three.nodes[:2]))
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.unjudged] == ["worker 2"]


def test_job_without_tf_config_is_skipped() -> None:
    assert compute_check(tf_config, fleet(2, node0001={"job": None}, node0002={"job": None})).status is Status.SKIP


def test_node_of_an_older_kdoctor_is_not_said_to_lack_tf_config() -> None:
    assert compute_check(tf_config, fleet(3, node0003={"job": None, "node": None})).findings == ()
