"""The topology as a versioned JSON document."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import Field

from kdoctor.documents import Document, Part
from kdoctor.topology.advice import Advice
from kdoctor.topology.choice import Choice
from kdoctor.topology.layout import Layout, Link, Place
from kdoctor.topology.tree import Branch


class TopologyGpu(Part):
    """A GPU and where it is."""

    index: int
    bus_id: str | None
    uuid: str | None
    name: str | None
    numa_node: int | None
    lost: bool
    failing: Annotated[bool, Field(description="Whether a check of severity error fails for it.")]
    narrow_link: str | None


class TopologyPair(Part):
    """What connects two GPUs."""

    first: int
    second: int
    link: Annotated[str, Field(description="NV12, PIX, ...; ? if unknown.")]
    level: str | None
    nvlinks: int | None
    blocked: str | None
    bandwidth_gbs: Annotated[float | None, Field(description="In one direction, GB/s, by version and width.")]


class TopologyBranch(Part):
    """A part of the machine, and what is below it."""

    label: str
    children: list[TopologyBranch]
    trouble: str | None


class TopologyChoice(Part):
    """The GPUs to use for a number of replicas."""

    replicas: int
    gpus: list[int]
    environment: dict[str, str]
    slowest: Annotated[TopologyPair | None, Field(description="An unknown pair counts as the slowest.")]
    best_of_machine: TopologyPair | None
    bandwidth_share: Annotated[
        float | None, Field(description="Slowest pair relative to the best pair, 0 to 1; null if a pair is unknown.")
    ]
    unknown_pairs: Annotated[int, Field(description="Pairs of these GPUs whose connection is unknown.")]
    numa_crossings: int | None
    sets_compared: int
    cross_device_ops: str | None
    fallback: str | None
    why: str


class Topology(Document):
    """How the GPUs are connected, and which to use."""

    schema_: Annotated[Literal["kdoctor/topology/v1"], Field(alias="schema")]
    gpus: list[TopologyGpu]
    pairs: list[TopologyPair]
    tree: list[TopologyBranch]
    choices: list[TopologyChoice]


def document(layout: Layout, tree: Sequence[Branch], choices: Sequence[tuple[Choice, Advice]]) -> Topology:
    """The document: GPUs, pairs, the tree, and the choice with its advice for each number of replicas."""
    return Topology(
        schema_="kdoctor/topology/v1",
        gpus=[_gpu(place) for place in layout.places],
        pairs=[_pair(link) for link in layout.links.values()],
        tree=[TopologyBranch.model_validate(asdict(branch)) for branch in tree],
        choices=[_choice(choice, advice) for choice, advice in choices],
    )


def _gpu(place: Place) -> TopologyGpu:
    gpu = place.gpu
    return TopologyGpu(
        index=gpu.index,
        bus_id=gpu.bus_id,
        uuid=gpu.uuid,
        name=gpu.name,
        numa_node=place.numa_node,
        lost=place.lost,
        failing=place.failing,
        narrow_link=place.narrow,
    )


def _pair(link: Link) -> TopologyPair:
    return TopologyPair(**asdict(link), link=link.label, bandwidth_gbs=link.gbs)


def _choice(choice: Choice, advice: Advice) -> TopologyChoice:
    return TopologyChoice(
        replicas=choice.replicas,
        gpus=list(choice.gpus),
        environment={
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "CUDA_VISIBLE_DEVICES": choice.visible_devices,
            **dict(item.split("=", 1) for item in advice.environment),
        },
        slowest=_pair(choice.slowest) if choice.slowest else None,
        best_of_machine=_pair(choice.best) if choice.best else None,
        bandwidth_share=choice.cost,
        unknown_pairs=choice.unknown,
        numa_crossings=choice.crossings,
        sets_compared=choice.sets,
        cross_device_ops=advice.cross_device_ops,
        fallback=advice.fallback,
        why=advice.why,
    )
