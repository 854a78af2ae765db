"""The state of a node, computed from its own results."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdoctor.engine.report import Conclusion
from kdoctor.model import Severity, Status
from kdoctor.version import __version__
from kdoctor_fleet.facts import FleetNode, NodeResult, NodeState
from kdoctor_fleet.states import Asked, Measure, own_state

GPU, SMOKE = "gpu.count-expected", "smoke.baseline"


def result(check: str = GPU, status: Status = Status.PASS, **changes: Any) -> NodeResult:
    values = {"title": "well", "severity": Severity.ERROR, **changes}
    return NodeResult(id=check, status=status, **values)


UNTRAINED = result(SMOKE, Status.SKIP, left_out=True, scenario=SMOKE)


def node(*results: NodeResult, verdict: Conclusion = Conclusion.PASS, options: str = "") -> FleetNode:
    return FleetNode(name="n", checklist="c, version 1", kdoctor="1", verdict=verdict, results=results, options=options)


def state(
    *results: NodeResult, verdict: Conclusion = Conclusion.PASS, others: tuple[NodeResult, ...] = ()
) -> NodeState:
    one = node(*results, verdict=verdict)
    return own_state(one, Asked.of([one, replace(node(*others), name="other")]))[0]


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ((result(),), NodeState.PASSED),
        ((result(), result("gpu.free", Status.FAIL, severity=Severity.WARNING)), NodeState.PASSED),
        ((result(), result("gpu.free", Status.SKIP)), NodeState.PASSED),
        ((result(), UNTRAINED), NodeState.UNKNOWN),
        ((result(), result("gpu.free", Status.SKIP, blocked_by="driver.loaded")), NodeState.UNKNOWN),
        ((result(), result("gpu.free", Status.UNKNOWN, accepted="agreed")), NodeState.PASSED),
        ((), NodeState.UNKNOWN),
        ((result(status=Status.SKIP),), NodeState.UNKNOWN),
        ((result(severity=Severity.INFO),), NodeState.UNKNOWN),
        ((result(), result("gpu.free", Status.UNKNOWN)), NodeState.UNKNOWN),
        ((result(), result("gpu.free", Status.UNKNOWN, accepted="--allow-unknown")), NodeState.UNKNOWN),
        ((result(), result("gpu.free", Status.SKIP, left_out=True)), NodeState.UNKNOWN),
        ((result(), result("gpu.free", Status.FAIL)), NodeState.FAILED),
    ],
)
def test_verdict_of_a_report_is_not_believed(results: tuple[NodeResult, ...], expected: NodeState) -> None:
    assert state(*results) is expected


@pytest.mark.parametrize(("options", "expected"), [("--no-smoke", "passed"), ("--skip smoke.baseline", "unknown")])
def test_trainings_may_be_left_out_only_by_the_option_that_the_verdict_names(options: str, expected: str) -> None:
    one = node(result(), UNTRAINED, options=options)
    assert own_state(one, Asked.of([one]))[0].value == expected


@pytest.mark.parametrize("verdict", [Conclusion.PASS, Conclusion.UNKNOWN])
def test_failure_is_the_reason_whatever_the_verdict_of_the_report_says(verdict: Conclusion) -> None:
    one = node(result(status=Status.FAIL), verdict=verdict)
    assert own_state(one, Asked.of([one])) == (NodeState.FAILED, f"{GPU} failed")


def test_verdict_can_only_make_it_worse() -> None:
    assert state(result(), verdict=Conclusion.FAIL) is NodeState.FAILED
    assert state(result(), verdict=Conclusion.UNKNOWN) is NodeState.UNKNOWN


def test_node_that_was_not_asked_what_others_were_is_unknown() -> None:
    assert state(result(), others=(result(), result(SMOKE))) is NodeState.UNKNOWN
    assert state(result(), result(SMOKE, Status.SKIP), others=(result(), result(SMOKE))) is NodeState.PASSED
    assert state(result(), others=(result(), result(SMOKE, Status.SKIP))) is NodeState.PASSED


@pytest.mark.parametrize(("others", "expected"), [("bba", "ppu"), ("ba", "pu"), ("a", "p"), ("baa", "upp")])
def test_node_that_was_asked_something_else_than_most_is_unknown(others: str, expected: str) -> None:
    """Of two that are as common, the one by which more was evaluated counts."""
    more = {
        "b": (result(), result("gpu.free"), result("host.disk")),
        "a": (result(), result("gpu.free", Status.SKIP), result("host.disk", Status.SKIP)),
    }
    nodes = [replace(node(*more[letter]), checklist=letter, name=str(place)) for place, letter in enumerate(others)]
    states = {"p": NodeState.PASSED, "u": NodeState.UNKNOWN}
    assert [own_state(one, Asked.of(nodes))[0] for one in nodes] == [states[letter] for letter in expected]


@pytest.mark.parametrize(
    ("facts", "expected"), [({"count": "8"}, NodeState.UNKNOWN), ({"count": "4"}, NodeState.PASSED)]
)
def test_skip_is_no_answer_where_an_equal_node_passed(facts: dict[str, str], expected: NodeState) -> None:
    one = replace(node(result(), result(SMOKE, Status.SKIP)), sections={"gpus": {"count": "8"}, "clock": {"x": "1"}})
    other = replace(node(result(), result(SMOKE)), name="other", sections={"gpus": facts})
    assert own_state(one, Asked.of([one, other]))[0] is expected


@pytest.mark.parametrize(
    ("started", "expected"),
    [
        (("02T03:00:00+00:00", "01T03:00:00+00:00"), "pp"),
        (("02T03:00:00+00:00", "01T02:59:59+00:00"), "pu"),
        (("02T03:00:00+02:00", "01T01:30:00+00:00"), "pp"),
        (("02T03:00:00+00:00", "09T03:00:00+00:00"), "pp"),  # of a clock that is ahead
        (("02T03:00:00+00:00", "", "no time"), "ppp"),
    ],
)
def test_report_that_a_node_left_before_it_died_is_no_evidence(started: tuple[str, ...], expected: str) -> None:
    nodes = [replace(node(result()), name=str(place), started_at=f"2025-01-{at}") for place, at in enumerate(started)]
    asked = Asked.of(nodes, merged_at="2025-01-03T00:00:00+00:00")
    assert "".join(own_state(one, asked)[0].value[0] for one in nodes) == expected


def test_day_of_reports_that_are_all_old() -> None:
    asked = Asked.of([replace(node(result()), started_at="2025-01-02T03:00:00+00:00")])
    assert (asked.day_before("2025-01-03T03:00:00Z"), asked.day_before("2025-01-03T03:00:01Z")) == ("", "2025-01-02")
    assert Asked.of([node(result())]).day_before("2025-01-03T03:00:01Z") == ""


def test_digests_are_compared_as_a_whole() -> None:
    one = replace(node(result()), expectations="sha256:12345678a")
    others = [replace(one, name=name, expectations="sha256:12345678b") for name in "xy"]
    assert own_state(one, Asked.of([one, *others]))[0] is NodeState.UNKNOWN


KNOWN = Measure(
    expectations="d",
    errors=frozenset({GPU, SMOKE}),
    checks=frozenset({GPU, SMOKE, "gpu.free"}),
    accepted={SMOKE: "agreed"},
)
FREE, TRAINED = result("gpu.free", severity=Severity.INFO), result(SMOKE)


@pytest.mark.parametrize(
    ("results", "changes", "expected"),
    [
        ((result(), TRAINED, FREE), {}, NodeState.PASSED),
        ((result(), TRAINED), {}, NodeState.UNKNOWN),
        ((result(), FREE), {}, NodeState.UNKNOWN),
        ((result(), FREE), {"kdoctor": "0"}, NodeState.PASSED),  # another release may ask less
        ((result(), FREE), {"name_of_checklist": "own"}, NodeState.PASSED),
        ((result(), TRAINED, FREE), {"expectations": "e"}, NodeState.UNKNOWN),
        ((result(), TRAINED, FREE), {"expectations": "e", "options": "--gpus 4"}, NodeState.PASSED),
        ((result(), result(SMOKE, Status.FAIL, severity=Severity.INFO), FREE), {}, NodeState.FAILED),
        ((result(), result(SMOKE, Status.UNKNOWN, accepted="agreed"), FREE), {}, NodeState.PASSED),
        ((result(), result(SMOKE, Status.UNKNOWN, accepted="no"), FREE), {}, NodeState.UNKNOWN),
        ((result(GPU, Status.UNKNOWN, accepted="agreed"), TRAINED, FREE), {}, NodeState.UNKNOWN),
    ],
)
def test_known_checklist_is_the_measure_of_all_nodes(
    results: tuple[NodeResult, ...], changes: dict[str, str], expected: NodeState
) -> None:
    asked = {"name_of_checklist": "known", "expectations": "d", "kdoctor": __version__, **changes}
    nodes = [replace(node(*results), name=name, **asked) for name in "ab"]  # type: ignore[arg-type]
    assert {own_state(one, Asked.of(nodes, {"known": KNOWN}))[0] for one in nodes} == {expected}


def test_no_node_decides_by_itself_that_a_failure_is_no_error() -> None:
    mild = result("gpu.free", Status.FAIL, severity=Severity.INFO)
    assert state(result(), mild, others=(result(), result("gpu.free"))) is NodeState.FAILED


RESULTS = st.lists(
    st.builds(
        result,
        st.sampled_from([GPU, SMOKE, "gpu.free"]),
        st.sampled_from(Status),
        severity=st.sampled_from(Severity),
        accepted=st.sampled_from([None, "--allow-unknown"]),
        left_out=st.booleans(),
    ),
    max_size=4,
    unique_by=lambda line: line.id,
)


FLEETS = st.lists(st.tuples(RESULTS, st.sampled_from("ab")), min_size=1, max_size=4)


@given(FLEETS)
def test_every_node_decides_what_was_asked(fleet: list[tuple[list[NodeResult], str]]) -> None:
    nodes = [replace(node(*results), checklist=checklist) for results, checklist in fleet]
    asked, alone = Asked.of(nodes), [Asked.of([one]) for one in nodes]
    assert asked.applied == frozenset().union(*(one.applied for one in alone))
    assert asked.errors == frozenset().union(*(one.errors for one in alone))


@given(FLEETS, st.sampled_from(Conclusion))
def test_node_passes_only_with_evidence_for_each_error_and_everything_that_was_asked(
    fleet: list[tuple[list[NodeResult], str]], verdict: Conclusion
) -> None:
    nodes = [replace(node(*results), verdict=verdict, checklist=checklist) for results, checklist in fleet]
    asked = Asked.of(nodes)
    for one in nodes:
        if own_state(one, asked)[0] is NodeState.PASSED:
            assert one.checklist == asked.checklist[0]
            errors = [line for line in one.results if line.id in asked.errors]
            assert any(line.status is Status.PASS for line in errors)
            assert all(line.status in (Status.PASS, Status.SKIP) and not line.left_out for line in errors)
            assert asked.applied <= {line.id for line in one.results}
