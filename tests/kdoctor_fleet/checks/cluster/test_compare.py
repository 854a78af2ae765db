"""How the checks of a fleet compare a section of facts: what differs, and what is said about it."""

from typing import Any

import pytest

from helpers.cases import cases
from helpers.kdoctor_fleet.fleets import fleet
from kdoctor.engine.report import Conclusion
from kdoctor.model import Action, Severity
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.cluster import _compare
from kdoctor_fleet.checks.cluster._compare import Comparison, Difference
from kdoctor_fleet.checks.cluster._fixes import install_packages


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
    remedy, rollback = install_packages("node0003", differences, fleet(1).nodes)
    assert remedy.commands == ("python -m pip install keras==3.10.0 late==2.0", "python -m pip uninstall -y odd")
    assert rollback.commands == ("python -m pip install keras==3.6.0 odd==1.0", "python -m pip uninstall -y late")
    assert remedy.action is Action.REINSTALL


def test_fix_of_a_division_follows_the_first_group() -> None:
    """In order of the values, if the groups have the same size."""
    (found,) = compared({"a": "1.0"}, {"a": "2.0"}, {"a": "3.0"})
    assert found.remedy.commands == ("python -m pip install a==1.0",)
    assert found.rollback.kind == "irreversible"  # two values
    (found,) = compared({"a": "1.0"}, {"a": "2.0"})
    assert found.rollback.commands == ("python -m pip install a==2.0",)


def test_packages_are_installed_in_the_environments_of_the_reports() -> None:
    """With uv where the environment has no pip. Nodes that passed, and are not odd in another fact, are followed."""
    _, divided = compared({"a": "1", "b": "1"}, {"a": "2", "b": "2"}, {"a": "3", "b": "2"})
    assert "To follow node0002" in divided.remedy.summary
    bad = {**sections(a="1"), "python": "/a/python", "verdict": Conclusion.FAIL}
    other = {"sections": {"parts": {"a": "3"}, "packages": {"pip": "1"}}, "python": "/b c/python"}
    (two,) = compute_check(parts, fleet(2, node0001=bad, node0002=sections(a="2"))).findings
    assert two.finding.remedy.commands == ("uv pip install --python /a/python a==2",)
    (three,) = compute_check(parts, fleet(3, node0001=bad, node0002=sections(a="2"), node0003=other)).findings
    assert three.finding.remedy.commands == (
        "uv pip install --python /a/python a==2",
        "'/b c/python' -m pip install a==2",
    )
    assert "(/a/python on node0001; /b c/python on node0003)" in three.finding.remedy.summary


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
