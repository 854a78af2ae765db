"""The numbers, groups and names that the checks of a fleet state."""

from dataclasses import replace
from typing import Any

import pytest

from helpers.cases import cases
from helpers.kdoctor_fleet.fleets import fleet
from helpers.saying import briefs, said
from kdoctor.facts import Node
from kdoctor.model import Action, Severity, Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.cluster import _compare
from kdoctor_fleet.checks.cluster._compare import Comparison, Difference
from kdoctor_fleet.checks.cluster._fixes import install_packages
from kdoctor_fleet.checks.cluster.ranks import ranks
from kdoctor_fleet.checks.cluster.reports import reports
from kdoctor_fleet.checks.cluster.same_checklist import same_checklist
from kdoctor_fleet.checks.cluster.training_speed import training_speed
from kdoctor_fleet.facts import Fleet


def sections(**facts: str) -> dict[str, Any]:
    return {"sections": {"parts": facts}}


@_compare.compared(
    "cluster.parts", Comparison(section="parts", what="parts", fix=install_packages), severity=Severity.ERROR
)
def parts(fact: str) -> str:
    """Parts are equal.

    Why: for this test.
    Remedy: none.
    Source: https://example.org
    """
    return fact


def compared(*nodes: dict[str, str] | None) -> list[Any]:
    """The outcomes for nodes with these facts; None for a node without the section."""
    changes = {
        f"node{n:04}": sections(**facts) if facts is not None else {"sections": {}} for n, facts in enumerate(nodes, 1)
    }
    return list(parts.function(fleet(len(nodes), **changes)))


def test_two_equal_nodes_are_enough() -> None:
    (only,) = compared({"a": "1", "b": "2"}, {"a": "1", "b": "2"})
    assert only.observed == "2 facts about the parts, equal on 2 nodes"
    (single,) = compared({"a": "1"})
    assert "only one node" in single.reason


def test_node_without_the_section_is_not_compared() -> None:
    unjudged, equal = compared({"a": "1"}, {"a": "1"}, None)
    assert unjudged.subject == "node0003"
    assert equal.observed == "1 fact about the parts, equal on 2 nodes"
    (alone,) = compared({"a": "1"}, None)
    assert alone.subject == "node0002"


def test_odd_node_is_compared_with_the_majority() -> None:
    (found,) = compared({"a": "1"}, {"a": "1"}, {"a": "2"})
    assert (found.subject, found.observed) == ("node0003", "a 2 (others 1); 2 of 3 nodes agree")
    assert (found.brief, found.expected) == ("a 2, others 1", "a 1")


def test_facts_in_which_the_same_nodes_differ_are_one_finding() -> None:
    facts = dict.fromkeys("abcd", "1")
    (found,) = compared(facts, facts, dict.fromkeys("abcd", "2"))
    assert found.observed == "a 2 (others 1), b 2 (others 1), c 2 (others 1) and 1 more; 2 of 3 nodes agree"
    assert found.brief == "a 2, others 1 (and 3 more)"


def test_half_of_the_nodes_are_no_majority() -> None:
    (found,) = compared({"a": "1"}, {"a": "2"})
    assert found.observed == "no majority: a 1 on node0001, a 2 on node0002"
    assert found.brief == "no majority: a 1 or 2"
    assert found.remedy.summary.startswith("Decide which group is right. To follow node0001: On node0002,")
    (also,) = compared({"a": "1", "b": "1"}, {"a": "2", "b": "2"})
    assert also.observed.endswith("; the same groups differ in b")
    assert also.brief == "no majority: a 1 or 2 (and 1 more)"
    assert also.expected == "one value of a, b on all nodes"


def test_groups_of_equal_size_are_in_the_order_of_their_values() -> None:
    (found,) = compared({"a": "2"}, {"a": "1"}, {"a": "3"})
    assert found.observed == "no majority: a 1 on node0002, a 2 on node0001, a 3 on node0003"


@cases(
    (47, "a {}, others 1"),  # 2 + 47 + 10 = 59 characters, and 60 are the most
    (48, "a {}, others 1"),
    (49, "a {}"),
    (58, "a {}"),
)
def test_short_form_leaves_out_the_others_first(length: int, brief: str) -> None:
    (found,) = compared({"a": "1"}, {"a": "1"}, {"a": "x" * length})
    assert found.brief == brief.format("x" * length)


def test_packages_are_pinned_or_removed_as_on_the_others() -> None:
    differences = [
        Difference(name="keras", label="keras", value="3.6.0", others="3.10.0"),
        Difference(name="odd", label="odd", value="1.0", others="none"),
        Difference(name="late", label="late", value="none", others="2.0"),
        Difference(name="built", label="built", value="not a version", others="of this folder"),
    ]
    remedy, rollback = install_packages("node0003", differences)
    assert remedy.commands == ("python -m pip install keras==3.10.0 late==2.0", "python -m pip uninstall -y odd")
    assert rollback.commands == ("python -m pip install keras==3.6.0 odd==1.0", "python -m pip uninstall -y late")
    assert remedy.action is Action.REINSTALL


def ranked(*places: tuple[int | None, int | None]) -> Fleet:
    return fleet(
        len(places),
        **{
            f"node{n:04}": {
                "node": Node(name=f"node{n:04}", named_by="slurm", launcher="slurm", job="7", rank=rank, ranks=size)
            }
            for n, (rank, size) in enumerate(places, 1)
        },
    )


def test_ranks_of_two_nodes_are_judged_and_of_one_are_not() -> None:
    assert said(compute_check(ranks, ranked((0, 2), (1, 2)))) == {"slurm job 7": "2 nodes, each with another rank"}
    assert compute_check(ranks, ranked((0, 1))).status is Status.SKIP
    assert compute_check(ranks, ranked((0, 2), (None, 2))).status is Status.SKIP


def test_rank_that_is_given_twice_and_other_sizes_fail() -> None:
    twice = said(compute_check(ranks, ranked((0, 3), (1, 3), (1, 3))))
    assert twice == {"node[0002-0003]": "all of them have rank 1 (slurm job 7)"}
    sizes = said(compute_check(ranks, ranked((0, 3), (1, 3), (2, 4))))
    assert sizes == {"node0003": "the job has 4 processes by its variables, and 3 by those of most nodes (slurm job 7)"}


def test_sizes_of_a_job_without_a_majority_are_a_finding_about_all_nodes() -> None:
    (found,) = compute_check(ranks, ranked((0, 2), (1, 3))).findings
    assert (found.finding.subject, found.finding.expected) == ("node[0001-0002]", "one size of the job on all nodes")
    assert found.finding.observed == (
        "the job has 3 processes by its variables, and 2 by those of node0001 (slurm job 7)"
    )
    assert found.finding.headline == "two sizes of the job, of which none has a majority"


def test_job_without_an_id_is_named_by_its_launcher() -> None:
    nodes = {
        f"node{n:04}": {"node": Node(name=f"node{n:04}", named_by="hostname", launcher="mpich", rank=n, ranks=2)}
        for n in (1, 2)
    }
    assert said(compute_check(ranks, fleet(2, **nodes))) == {"ranks of mpich": "2 nodes, each with another rank"}


def test_silent_nodes_are_grouped_by_their_reason() -> None:
    names = tuple(f"node{n:04}" for n in range(1, 6))
    reasons = {"node0004": "node0004 refused", "node0003": "node0003 refused"}
    given = replace(fleet(2), expected=names, reasons=reasons)
    result = compute_check(reports, given)
    found = {item.subject: item.reason for item in result.unjudged}
    assert found == {"node[0003-0004]": "NODE refused", "node0005": "expected, but sent no report"}
    assert said(result)["node[0001-0002]"] == "2 of 5 expected nodes reported"


def test_checklist_of_most_nodes_is_expected() -> None:
    odd = {"node0001": {"checklist": "zeta, version 1"}, "node0004": {"checklist": "alpha, version 1"}}
    result = compute_check(same_checklist, fleet(4, **odd))
    usual = fleet(4).nodes[1].checklist
    assert said(result)["node0001"] == f"checklist zeta, version 1; 2 of 4 nodes have {usual}"
    tie = compute_check(same_checklist, fleet(2, node0001={"checklist": "b"}, node0002={"checklist": "a"}))
    assert said(tie)["node0001"] == "checklist b; 1 of 2 nodes have a"


def timed(*seconds: float, **more: float) -> Any:
    steps = {f"node{n:04}": {"steps": {"baseline": value}} for n, value in enumerate(seconds, 1)}
    return compute_check(training_speed, fleet(len(seconds), **steps))


def test_slow_node_has_its_time_and_the_median() -> None:
    result = timed(0.01, 0.01, 0.01, 0.02)
    assert said(result) == {"node0004": "baseline: a step takes 20.0 ms, 2.0 times the median (10.0 ms)"}
    assert timed(0.01, 0.01, 0.01, 0.0129).status is Status.PASS
    assert timed(0.01, 0.01, 0.01, 0.0131).status is Status.FAIL
    assert timed(0.01, 0.01, 0.02).status is Status.SKIP  # fewer than 4 nodes
    assert said(timed(0.01, 0.01, 0.01, 0.01)) == {"all nodes": "1 training, each on 4 nodes or more"}


def test_wide_spread_of_the_nodes_allows_more() -> None:
    """Median 10, median deviation 2: 10 + 3.5 * 1.4826 * 2 = 20.4."""
    spread = (0.006, 0.008, 0.010, 0.012)
    assert timed(*spread, 0.0203).status is Status.PASS
    assert timed(*spread, 0.0205).status is Status.FAIL


def test_several_slow_trainings_of_a_node_are_counted() -> None:
    usual = {"a": 0.01, "b": 0.01, "c": 0.01}
    steps = {f"node{n:04}": {"steps": usual} for n in range(1, 5)}
    for number, text in ((2, "and 1 more training"), (3, "and 2 more trainings")):
        slow = {**usual, **dict.fromkeys(list(usual)[:number], 0.05)}
        result = compute_check(training_speed, fleet(4, **{**steps, "node0004": {"steps": slow}}))
        assert said(result)["node0004"].endswith(f"(10.0 ms) {text}")
    assert briefs(result) == ["trains much slower than its peers"]


def test_fix_of_a_division_follows_the_first_group() -> None:
    """In order of the values, if the groups have the same size."""
    (found,) = compared({"a": "1.0"}, {"a": "2.0"}, {"a": "3.0"})
    assert found.remedy.commands == ("python -m pip install a==1.0",)
    assert found.rollback.commands == ("python -m pip install a==3.0",)


@pytest.mark.parametrize("length", [38, 39, 40])
def test_long_difference_is_shortened_to_a_line(length: int) -> None:
    """60 characters fit: ``a VALUE, others 1 (and 1 more)``."""
    value = "x" * (length - 2)
    facts = {"a": "1", "b": "1"}
    (found,) = compared(facts, facts, {"a": value, "b": "2"})
    assert (", others 1" in found.brief) is (len(f"a {value}, others 1 (and 1 more)") <= 60)
    (cut,) = compared(facts, facts, {"a": "x" * 99, "b": "2"})
    assert len(cut.brief) == 60
    assert cut.brief.endswith("x ... (and 1 more)")


def test_trained_nodes_are_counted_by_the_fewest() -> None:
    steps = {f"node000{n}": {"steps": {"a": 0.01, **({"b": 0.01} if n > 1 else {})}} for n in range(1, 6)}
    assert said(compute_check(training_speed, fleet(5, **steps))) == {
        "all nodes": "2 trainings, each on 4 nodes or more"
    }
