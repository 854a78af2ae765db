import pytest

from helpers.reports import failure, finding
from kdoctor.engine.causes import find_causes
from kdoctor.engine.report import Conclusion
from kdoctor.model import Severity, Status
from kdoctor_fleet.facts import FleetNode, NodeResult, Nodes
from kdoctor_fleet.names import fold
from kdoctor_fleet.results import merge_results


@pytest.mark.parametrize("status", Status)
def test_problem_counts_only_where_the_node_says_that_its_check_failed(status: Status) -> None:
    line = NodeResult(id="gpu.free", title="free", severity=Severity.ERROR, status=status)
    causes = find_causes([failure("gpu.free", finding("GPU 1", observed="busy"))])
    node = FleetNode(name="n1", checklist="c", kdoctor="1", verdict=Conclusion.FAIL, results=(line,), causes=causes)
    (merged,), _ = merge_results([node], fold, {})
    assert [item.finding.subject for item in merged.findings] == (["n1"] if status is Status.FAIL else [])


def test_node_with_a_problem_in_two_causes_is_named_once_by_each_check() -> None:
    checks = ("gpu.free", "gpu.fan")
    lines = [NodeResult(id=check, title="", severity=Severity.ERROR, status=Status.FAIL) for check in checks]
    (cause,) = find_causes([failure(check, finding("GPU 1", observed="busy")) for check in checks])
    nodes = [
        FleetNode(name=name, checklist="c", kdoctor="1", results=(*lines,), causes=(cause,) * 2)
        for name in ("n1", "n2")
    ]
    merged, _ = merge_results(nodes, Nodes.of, {})
    assert [[item.finding.subject for item in result.findings] for result in merged] == [["n1,n2"]] * 2
