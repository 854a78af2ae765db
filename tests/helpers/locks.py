"""The lock of an H100 node with eight GPUs."""

from typing import Any

from helpers.facts import environment, host, keras, kernel, packages, smoke_run, target, tensorflow
from helpers.facts import gpus as eight_gpus
from kdoctor.facts import FactGroup, Unavailable
from kdoctor.lock.document import Lock, Measure
from kdoctor.lock.facts import recorded_facts
from kdoctor.testing import fact_table

RECORDED = "2026-04-01T06:00:00+00:00"


def node_facts(*changed: FactGroup) -> dict[type[FactGroup], FactGroup | Unavailable]:
    """The facts of the node. A given group replaces the healthy one."""
    return fact_table(
        target(), packages(), tensorflow(), keras(), eight_gpus(), kernel(), host(),
        environment(NCCL_DEBUG="WARN"), smoke_run(), *changed,
    )  # fmt: skip


def lock(*changed: FactGroup, **values: Any) -> Lock:
    """The lock of that node."""
    found = recorded_facts(node_facts(*changed))
    defaults: dict[str, Any] = {
        "checklist": "job",
        "version": 3,
        "expectations": "sha256:0",
        "recorded": RECORDED,
        "kdoctor": "0.1.0",
        "identifiers": False,
        "facts": {**found.facts, "checks": {"smoke.baseline": "pass"}},
        "measured": found.measured,
    }
    return Lock(**{**defaults, **values})


__all__ = ["RECORDED", "Measure", "lock", "node_facts"]
