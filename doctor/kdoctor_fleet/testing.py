"""A healthy fleet, for tests of checks."""

from dataclasses import replace
from functools import cache

from kdoctor.facts import Node
from kdoctor.run.node_facts import shared_facts
from kdoctor.testing import healthy_node
from kdoctor_fleet.facts import Fleet, FleetNode, JobConfig, PairTests, Together


@cache
def healthy_fleet() -> Fleet:
    """Four of that node, each another task of the job, which train with each other."""
    names = tuple(f"node{number:04}" for number in range(1, 5))
    cluster = {"worker": tuple(f"{name}:2222" for name in names)}
    sections, node = shared_facts(healthy_node()), healthy_node()[Node]
    return Fleet(
        nodes=tuple(
            FleetNode(
                name=name,
                checklist="multi-gpu-keras, version 1",
                kdoctor="0.1.0",
                sections=sections,
                node=replace(node, name=name, rank=index) if isinstance(node, Node) else None,
                job=JobConfig(cluster=cluster, task=f"worker {index}"),
                steps={"smoke.baseline/mirrored, 8 x gpu": 0.01 + 0.0001 * index},
                started_at="2026-01-01T00:00:00+00:00",
            )
            for index, name in enumerate(names)
        ),
        merged_at="2026-01-01T00:10:00+00:00",
        pairs=PairTests(
            nodes=names, proven=names, pairs=2, together=Together(nodes=names, outcome="trained"), gbs=11.0
        ),
    )
