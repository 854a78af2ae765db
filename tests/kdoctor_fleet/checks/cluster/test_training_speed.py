"""Expected limits: median 10.0 ms, median absolute deviation 0.1 ms, so 3.5 robust deviations are 0.52 ms."""

from helpers.cases import cases
from helpers.kdoctor_fleet.fleets import fleet, names_of
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.cluster.training_speed import training_speed
from kdoctor_fleet.facts import Fleet

TRAINING = "smoke.baseline/mirrored, 8 x gpu"


def nodes(*milliseconds: float, training: str = TRAINING) -> Fleet:
    steps = {name: {"steps": {training: value / 1000}} for name, value in zip(names_of(99), milliseconds, strict=False)}
    return fleet(len(milliseconds), **steps)


@cases((10.1, False), (10.6, False), (12.9, False), (13.1, True), (40.0, True))
def test_node_far_from_the_median_is_slow(last: float, *, slow: bool) -> None:
    result = compute_check(training_speed, nodes(9.9, 9.9, 10.0, 10.0, 10.1, 10.1, last))
    assert [judged.finding.subject for judged in result.findings] == (["node0007"] if slow else [])


def test_half_of_the_nodes_slow_is_no_outlier() -> None:
    assert compute_check(training_speed, nodes(10.0, 10.0, 40.0, 40.0)).findings == ()


def test_fast_node_is_well() -> None:
    assert compute_check(training_speed, nodes(10.0, 10.0, 10.0, 1.0)).status is Status.PASS


def test_other_trainings_are_not_compared() -> None:
    four, one = nodes(10.0, 10.0, 10.0, 10.0), nodes(90.0, training="smoke.baseline/mirrored, 4 x gpu")
    mixed = fleet(
        5, **{node.name: {"steps": node.steps} for node in four.nodes}, node0005={"steps": one.nodes[0].steps}
    )
    assert compute_check(training_speed, mixed).status is Status.PASS


def test_node_at_the_limit_is_not_slow() -> None:
    """Seconds that are sums of powers of two, whose products are exact."""
    exact = (250.0, 250.0, 250.0, 500.0)
    assert compute_check(training_speed, nodes(*exact), least_factor=2.0).status is Status.PASS
    assert compute_check(training_speed, nodes(*exact), least_factor=1.9).status is Status.FAIL
