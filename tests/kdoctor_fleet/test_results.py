import pytest

from helpers.reports import failure, finding
from kdoctor.engine.causes import find_causes
from kdoctor.engine.report import Conclusion
from kdoctor.model import Severity, Status
from kdoctor_fleet.facts import FleetNode, NodeResult
from kdoctor_fleet.names import fold
from kdoctor_fleet.results import merge_results


@pytest.mark.parametrize("status", Status)
def test_problem_counts_only_where_the_node_says_that_its_check_failed(status: Status) -> None:
    line = NodeResult(id="gpu.free", title="free", severity=Severity.ERROR, status=status)
    causes = find_causes([failure("gpu.free", finding("GPU 1", observed="busy"))])
    node = FleetNode(name="n1", checklist="c", kdoctor="1", verdict=Conclusion.FAIL, results=(line,), causes=causes)
    (merged,), _ = merge_results([node], fold, {})
    assert [item.finding.subject for item in merged.findings] == (["n1"] if status is Status.FAIL else [])
