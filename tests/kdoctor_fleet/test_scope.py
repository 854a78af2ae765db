from helpers.cases import cases
from helpers.checks import ALL
from kdoctor_fleet.report import scope_of


@cases(
    ("gpu.responding", 0, 64, "node"),
    ("host.memory", 63, 1, "node"),
    ("versions.keras-compatible", 63, 1, "job"),
    ("smoke.baseline", 63, 1, "node"),
    ("smoke.baseline", 1, 63, "job"),
    ("smoke.baseline", 2, 2, "job"),
    ("network.hosts-resolve", 63, 1, "node"),
    ("network.hosts-resolve", 0, 64, "job"),
    ("network.port-state", 0, 64, "node"),
    ("cluster.driver", 0, 0, "node"),
    ("cluster.frameworks", 0, 0, "job"),
)
def test_scope_of_a_failed_check(check: str, passed: int, failed: int, scope: str) -> None:
    assert scope_of(check, passed=passed, failed=failed) == scope


def test_host_that_is_not_found_may_be_a_wrong_one_if_nodes_name_different_clusters() -> None:
    assert scope_of("network.hosts-resolve", passed=63, failed=1, alike=False) == "job"
    assert scope_of("network.port-state", passed=63, failed=1, alike=False) == "node"


def test_every_check_has_a_scope() -> None:
    assert {scope_of(check.id, passed=0, failed=1) for check in ALL.values()} == {"node", "job"}
