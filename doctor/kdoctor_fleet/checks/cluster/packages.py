from __future__ import annotations

from collections.abc import Iterator

from kdoctor.check import check
from kdoctor.model import Outcome, Severity
from kdoctor_fleet.checks.cluster._compare import Comparison, compare
from kdoctor_fleet.checks.cluster._fixes import install_packages
from kdoctor_fleet.checks.cluster.frameworks import NAMES
from kdoctor_fleet.facts import Fleet


@check("cluster.packages", severity=Severity.WARNING)
def packages(fleet: Fleet) -> Iterator[Outcome]:
    """All nodes have the same further packages.

    Why: nodes of one job should run one environment. A library that differs on one node makes data or preprocessing
    differ there, and an error that only this node shows is hard to find.
    Remedy: install the versions of the majority on the odd nodes, or start all nodes from one image.
    Source: https://pip.pypa.io/en/stable/topics/repeatable-installs/
    """
    yield from compare(
        fleet,
        Comparison(
            section="packages",
            what="packages",
            without=NAMES,
            fix=install_packages,
            absent="not installed",
            explained_by=("cluster.frameworks", "cluster.system"),
        ),
    )
