from dataclasses import replace
from typing import Any

import pytest

from helpers.kdoctor_fleet.fleets import fleet
from kdoctor.facts import Node
from kdoctor.model import Status
from kdoctor.testing import compute_check
from kdoctor_fleet.checks.cluster.ranks import ranks
from kdoctor_fleet.facts import Fleet

NODE = Node(name="node0002", named_by="SLURMD_NODENAME", launcher="slurm", job="7", rank=1, ranks=3)


def with_second(**changes: Any) -> Fleet:
    return fleet(3, node0002={"node": replace(NODE, **changes)})


@pytest.mark.parametrize("change", [{}, {"job": "8", "rank": 0}, {"launcher": None, "rank": None}, {"ranks": None}])
def test_other_ranks_of_a_job_pass(change: dict[str, Any]) -> None:
    assert compute_check(ranks, with_second(**change)).status is Status.PASS
