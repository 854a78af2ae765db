"""Trainings over several nodes: bad nodes, bad links, and nodes that work only in smaller groups."""

from dataclasses import replace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.kdoctor_fleet.fleets import fleet, names_of
from kdoctor.check import Check
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.cluster.links import links
from kdoctor_fleet.checks.cluster.pairs import pairs
from kdoctor_fleet.checks.cluster.together import together
from kdoctor_fleet.facts import BadLink, BadNode, Fleet, PairTests, Together

ONE, TWO, THREE, FOUR = NAMES = tuple(names_of(4))


def fleet_with(**changes: Any) -> Fleet:
    values: dict[str, Any] = {"nodes": NAMES, "proven": NAMES, "pairs": 2, **changes}
    return replace(fleet(4), pairs=PairTests(**values))


def group(**changes: Any) -> Together:
    values: dict[str, Any] = {"nodes": NAMES, "outcome": "trained", **changes}
    return Together(**values)


@pytest.mark.parametrize("check", [pairs, links, together])
def test_nothing_is_judged_that_was_not_requested(check: Check) -> None:
    assert compute_check(check, replace(fleet(4), pairs=None)).status is Status.SKIP


@pytest.mark.parametrize("check", [pairs, links, together])
def test_nodes_that_train_pass(check: Check) -> None:
    assert compute_check(check, fleet_with(together=group(), gbs=11.0)).status is Status.PASS


def test_bad_node_is_the_subject() -> None:
    bad = BadNode(name=THREE, partner=ONE, problem="hangs in phase strategy")
    result = compute_check(pairs, fleet_with(proven=(ONE, TWO, FOUR), bad=(bad,)))
    (found,) = result.findings
    assert found.finding.subject == THREE
    assert ONE in found.finding.observed
    assert "hangs in phase strategy" in found.finding.observed


def test_bad_link_names_both_and_leaves_out_one() -> None:
    link = BadLink(nodes=(ONE, TWO), leave_out=TWO, problem="hangs")
    (found,) = compute_check(links, fleet_with(links=(link,))).findings
    assert found.finding.subject == TWO
    assert ONE in found.finding.observed
    assert compute_check(pairs, fleet_with(links=(link,))).status is Status.PASS


def test_untested_node_is_unknown() -> None:
    result = compute_check(pairs, fleet_with(proven=(ONE, TWO, THREE), undecided={FOUR: "port 23000 cannot be used"}))
    assert result.status is Status.UNKNOWN
    assert [item.subject for item in result.unjudged] == [FOUR]


def test_no_pair_that_trains_is_a_failure_of_all() -> None:
    none = fleet_with(proven=(), failed=2, undecided=dict.fromkeys(NAMES, "hangs"))
    (found,) = compute_check(together, none).findings
    assert found.finding.subject == "node[0001-0004]"
    assert compute_check(pairs, none).status is Status.UNKNOWN
    assert compute_check(links, none).status is Status.UNKNOWN


def test_no_pair_that_could_be_tested_is_unknown() -> None:
    none = fleet_with(proven=(), undecided=dict.fromkeys(NAMES, "TensorFlow is not installed"))
    assert compute_check(together, none).status is Status.UNKNOWN


def test_two_good_nodes_need_no_larger_group() -> None:
    assert compute_check(together, fleet_with(nodes=(ONE, TWO), proven=(ONE, TWO), pairs=1)).status is Status.SKIP


def test_smallest_group_that_hangs_is_the_subject() -> None:
    hangs = group(outcome="failed", problem="hangs", smallest=(ONE, TWO, THREE), trained=((THREE, FOUR), (FOUR,)))
    (found,) = compute_check(together, fleet_with(together=hangs)).findings
    assert found.finding.subject == "node[0001-0003]"
    assert "node[0003-0004] train alone" in found.finding.observed


@cases({"interrupted": True, "together": group()}, {"together": group(outcome="untested", problem="port")})
def test_interrupted_and_untested_groups_are_unknown(changes: dict[str, Any]) -> None:
    assert compute_check(together, fleet_with(**changes)).status is Status.UNKNOWN
