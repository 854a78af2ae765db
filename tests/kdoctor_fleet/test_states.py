"""The state of a node, computed from its own results."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdoctor.engine.report import Conclusion
from kdoctor.model import Severity, Status
from kdoctor_fleet.facts import FleetNode, NodeResult
from kdoctor_fleet.report import NodeState
from kdoctor_fleet.states import judged_anywhere, own_state

GPU, SMOKE = "gpu.count-expected", "smoke.baseline"


def result(check: str = GPU, status: Status = Status.PASS, **changes: Any) -> NodeResult:
    values = {"title": "well", "severity": Severity.ERROR, **changes}
    return NodeResult(id=check, status=status, **values)


def node(*results: NodeResult, verdict: Conclusion = Conclusion.PASS) -> FleetNode:
    return FleetNode(name="n", checklist="c, version 1", kdoctor="1", verdict=verdict, results=results)


def state(
    *results: NodeResult, verdict: Conclusion = Conclusion.PASS, others: tuple[NodeResult, ...] = ()
) -> NodeState:
    one = node(*results, verdict=verdict)
    return own_state(one, judged_anywhere([one, node(*others)]))[0]


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        ((result(),), NodeState.PASSED),
        ((result(), result("gpu.free", Status.FAIL, severity=Severity.WARNING)), NodeState.PASSED),
        ((result(), result("gpu.free", Status.SKIP)), NodeState.PASSED),
        ((result(), result(SMOKE, Status.SKIP, left_out=True, scenario=SMOKE)), NodeState.PASSED),
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


def test_verdict_can_only_make_it_worse() -> None:
    assert state(result(), verdict=Conclusion.FAIL) is NodeState.FAILED
    assert state(result(), verdict=Conclusion.UNKNOWN) is NodeState.UNKNOWN


def test_node_that_was_not_asked_what_others_were_is_unknown() -> None:
    assert state(result(), others=(result(), result(SMOKE))) is NodeState.UNKNOWN
    assert state(result(), result(SMOKE, Status.SKIP), others=(result(), result(SMOKE))) is NodeState.PASSED
    assert state(result(), others=(result(), result(SMOKE, Status.SKIP))) is NodeState.PASSED


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


@given(st.lists(RESULTS, min_size=1, max_size=4), st.sampled_from(Conclusion))
def test_node_passes_only_with_evidence_for_each_error_and_everything_that_was_asked(
    fleet: list[list[NodeResult]], verdict: Conclusion
) -> None:
    nodes = [replace(node(*results), verdict=verdict) for results in fleet]
    judged = judged_anywhere(nodes)
    for one in nodes:
        if own_state(one, judged)[0] is NodeState.PASSED:
            errors = [line for line in one.results if line.severity is Severity.ERROR]
            assert any(line.status is Status.PASS for line in errors)
            assert all(line.status in (Status.PASS, Status.SKIP) and not line.left_out for line in errors)
            assert judged <= {line.id for line in one.results}
