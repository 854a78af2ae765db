from dataclasses import replace

import pytest

from helpers.cases import cases
from helpers.reports import failure
from kdoctor.engine.causes import find_causes
from kdoctor.errors import UsageError
from kdoctor.model import Severity
from kdoctor_fleet.facts import NodeState
from kdoctor_fleet.report import NodeNote
from kdoctor_fleet.verdict import conclude_fleet, needed_nodes


@cases((None, 64, 64), ("60", 64, 60), ("95%", 64, 61), ("100%", 64, 64), ("50%", 3, 2), ("66.4%", 1875, 1245))
def test_threshold_is_a_number_or_a_share(threshold: str | None, total: int, needed: int) -> None:
    assert needed_nodes(threshold, total) == needed


@pytest.mark.parametrize("threshold", ["", "x", "0", "0%", "101%", "-1", "1.5", "1e3", "%"])
def test_other_thresholds_are_refused(threshold: str) -> None:
    with pytest.raises(UsageError, match="--min-healthy"):
        needed_nodes(threshold, 64)


def nodes(states: str) -> list[NodeNote]:
    """One node for each letter: p, f, u, s; in capitals if it was not expected."""
    known = {"p": NodeState.PASSED, "f": NodeState.FAILED, "u": NodeState.UNKNOWN, "s": NodeState.SILENT}
    return [
        NodeNote(name=f"n{index}", state=known[letter.lower()], reason="", expected=letter.islower())
        for index, letter in enumerate(states)
    ]


@cases(
    ("pppp", 4, 0),
    ("pppf", 4, 1),
    ("pppf", 3, 0),
    ("pppu", 4, 3),
    ("ppps", 4, 3),
    ("ppfs", 4, 1),
    ("pppFUS", 3, 0),
    ("ppP", 3, 1),
)
def test_verdict_of_states(states: str, needed: int, exit_code: int) -> None:
    assert conclude_fleet(nodes(states), needed, causes=(), unread=0, undecided=()).exit_code == exit_code


def test_open_comparisons_are_inconclusive_and_an_unread_file_is_one_node() -> None:
    assert conclude_fleet(nodes("pp"), 2, causes=(), unread=0, undecided=("cluster.tf-config",)).exit_code == 3
    found = conclude_fleet(nodes("pf"), 3, causes=(), unread=1, undecided=())
    assert (found.exit_code, found.reason) == (1, "1 of 2 nodes passed, 3 needed; 1 file could not be read")


@pytest.mark.parametrize("severity", Severity)
def test_enough_nodes_pass_with_a_warning_if_something_is_wrong(severity: Severity) -> None:
    causes = find_causes((failure("gpu.free", severity=severity),))
    assert conclude_fleet(nodes("ppf"), 2, causes=causes, unread=0, undecided=()).warned is (
        severity is not Severity.INFO
    )


def test_verdict_names_the_options_by_which_nodes_passed() -> None:
    reason = conclude_fleet(nodes("pp"), 2, causes=(), unread=0, undecided=(), options="--gpus 0").reason
    assert "--gpus 0" in reason


def test_verdict_says_why_most_of_the_unknown_are() -> None:
    one, *others = nodes("uuup")
    found = [replace(one, reason="silent"), *(replace(node, reason="left out") for node in others)]
    reason = conclude_fleet(found, 4, causes=(), unread=0, undecided=()).reason
    assert "3 unknown (left out: 2 nodes)" in reason
