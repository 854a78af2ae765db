"""The checks that compare a section of facts over all nodes."""

from dataclasses import replace

import pytest

from helpers.cases import cases
from helpers.kdoctor_fleet.fleets import fleet
from kdoctor.check import Check
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.cluster.comparisons import (
    cuda_libraries,
    driver,
    environment,
    frameworks,
    gpus,
    interpreter,
    network,
    packages,
    system,
    topology,
)

PLANTED = [
    (frameworks, "packages", "keras", "3.6.0"),
    (frameworks, "packages", "tensorflow", None),
    (frameworks, "packages", "jax", "0.7.0"),
    (frameworks, "packages", "tf-keras", "2.20.0"),
    (packages, "packages", "pandas", "2.0.0"),
    (interpreter, "python", "version", "3.12.1"),
    (interpreter, "keras", "floatx", "float16"),
    (cuda_libraries, "libraries", "cudnn", "9.1.0"),
    (cuda_libraries, "libraries", "nccl", "missing"),
    (driver, "driver", "version", "535.161.08"),
    (system, "host", "kernel", "5.15.0-1"),
    (system, "host", "image", "job/train:3"),
    (gpus, "gpus", "count", "7"),
    (topology, "topology", "nvlinks.active", "143"),
    (environment, "environment", "NCCL_ALGO", "Ring"),
    (environment, "environment", "XLA_FLAGS", "--xla_gpu_autotune_level=0"),
    (network, "network", "mlx5_0/1.gbit-per-second", "200"),
    (network, "network", "eth0.mtu", "9000"),
]
CHECKS = list({check.id: check for check, *_ in PLANTED}.values())
NAMES = [(check, section, name, value) for check, section, name, value in PLANTED]


def of_nodes(*nodes: str, section: str, name: str, value: str | None) -> dict[str, dict[str, object]]:
    return {node: {"sections": {section: {name: value}}} for node in nodes}


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_equal_nodes_pass(check: Check) -> None:
    assert compute_check(check, fleet(5)).status is Status.PASS


@pytest.mark.parametrize(("check", "section", "name", "value"), NAMES)
def test_odd_nodes_are_named_against_the_majority(check: Check, section: str, name: str, value: str | None) -> None:
    planted = of_nodes("node0002", "node0003", section=section, name=name, value=value)
    result = compute_check(check, fleet(5, **planted))
    (finding,) = (judged.finding for judged in result.findings)
    assert finding.subject == "node[0002-0003]"
    assert "3 of 5" in finding.observed
    assert len(finding.brief) <= 60
    others = [other for other in CHECKS if other is not check and compute_check(other, fleet(5, **planted)).findings]
    assert others == []


@pytest.mark.parametrize(("check", "section", "name", "value"), NAMES)
def test_half_of_the_nodes_is_no_majority(check: Check, section: str, name: str, value: str | None) -> None:
    planted = of_nodes("node0002", "node0004", section=section, name=name, value=value)
    (judged,) = compute_check(check, fleet(4, **planted)).findings
    assert judged.finding.subject == "node[0001-0004]"
    assert "on node[0001,0003]" in judged.finding.observed
    assert "on node[0002,0004]" in judged.finding.observed


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_nodes_without_facts_are_unknown_and_the_others_judged(check: Check) -> None:
    nodes = fleet(4).nodes
    old = replace(fleet(4), nodes=(replace(nodes[0], sections={}), *nodes[1:]))
    result = compute_check(check, old)
    assert result.status is Status.UNKNOWN
    assert {item.subject for item in result.unjudged} == {"node0001"}


def test_several_differences_of_the_same_nodes_are_one_finding_with_one_command() -> None:
    planted = {"node0002": {"sections": {"packages": {"keras": "3.6.0", "numpy": "1.26.0"}}}}
    (judged,) = compute_check(frameworks, fleet(3, **planted)).findings
    remedy = judged.finding.remedy
    healthy = fleet(1).nodes[0].sections["packages"]
    assert f"keras=={healthy['keras']}" in remedy.commands[0]
    assert remedy.commands[0].startswith("python -m pip install ")
    assert judged.finding.rollback.commands[0] == "python -m pip install keras==3.6.0 numpy==1.26.0"


def test_variable_of_the_majority_is_set_and_one_that_it_lacks_is_unset() -> None:
    planted = of_nodes("node0001", section="environment", name="NCCL_ALGO", value="Ring; reboot")
    (judged,) = compute_check(environment, fleet(3, **planted)).findings
    assert judged.finding.remedy.commands == ("unset NCCL_ALGO",)
    assert judged.finding.rollback.commands == ("export NCCL_ALGO='Ring; reboot'",)


@cases(("count", "7", "GPU count 7"), ("model.NVIDIA H200", "8", "GPUs with model NVIDIA H200: 8"))
def test_odd_gpus_are_named_by_what_differs(name: str, value: str, shown: str) -> None:
    (judged,) = compute_check(gpus, fleet(3, **of_nodes("node0001", section="gpus", name=name, value=value))).findings
    assert judged.finding.observed.startswith(shown)


@cases(
    (environment, "environment", "X; reboot"),
    (frameworks, "packages", "keras --index-url=x"),
    (packages, "packages", "-r"),
)
def test_name_that_is_no_name_is_in_no_command(check: Check, section: str, name: str) -> None:
    (judged,) = compute_check(check, fleet(3, **of_nodes("node0001", section=section, name=name, value="1"))).findings
    assert judged.finding.remedy.commands == ()
    assert judged.finding.rollback.commands == ()


def test_variables_of_one_node_are_not_compared() -> None:
    planted = of_nodes("node0001", section="environment", name="CUDA_VISIBLE_DEVICES", value="1,0")
    assert compute_check(environment, fleet(3, **planted)).status is Status.PASS
