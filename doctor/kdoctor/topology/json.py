"""The topology for programs: a versioned document of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kdoctor.topology.advice import Advice
from kdoctor.topology.choice import Choice
from kdoctor.topology.layout import Layout, Link
from kdoctor.topology.tree import Branch

SCHEMA = "kdoctor/topology/v1"


def document(layout: Layout, tree: Sequence[Branch], choices: Sequence[tuple[Choice, Advice]]) -> dict[str, Any]:
    """The document: GPUs, pairs, the tree, and for each number of replicas the choice with its advice."""
    return {
        "schema": SCHEMA,
        "gpus": [
            {
                "index": place.gpu.index,
                "bus_id": place.gpu.bus_id,
                "uuid": place.gpu.uuid,
                "name": place.gpu.name,
                "numa_node": place.numa_node,
                "lost": place.lost,
                "narrow_link": place.narrow,
            }
            for place in layout.places
        ],
        "pairs": [_pair(link) for link in layout.links.values()],
        "tree": [asdict(branch) for branch in tree],
        "choices": [
            {
                "replicas": choice.replicas,
                "gpus": list(choice.gpus),
                "environment": {
                    "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
                    "CUDA_VISIBLE_DEVICES": choice.visible_devices,
                    **dict(item.split("=", 1) for item in advice.environment),
                },
                "slowest": _pair(choice.slowest) if choice.slowest else None,
                "best_of_machine": _pair(choice.best) if choice.best else None,
                "bandwidth_share": choice.cost,
                "numa_crossings": choice.crossings,
                "sets_compared": choice.sets,
                "cross_device_ops": advice.cross_device_ops,
                "fallback": advice.fallback,
                "why": advice.why,
            }
            for choice, advice in choices
        ],
    }


def _pair(link: Link) -> dict[str, Any]:
    return {
        "first": link.first,
        "second": link.second,
        "link": link.label,
        "level": link.level,
        "nvlinks": link.nvlinks,
        "blocked": link.blocked,
        "bandwidth_gbs": link.gbs,
    }
