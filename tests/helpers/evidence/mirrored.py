"""The same machine in the opposite order."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from kdoctor.facts import Gpus, Host, PciDevices
from kdoctor.model import Outcome

Item = TypeVar("Item")
ORDERED = frozenset({"gpu.responding"})
"""Checks for which the order of the GPUs says something: lost ones have the addresses that are left, in order."""


def mirrored(facts: object) -> object:
    """GPUs, their links, pairs and both sides of each pair, devices, nodes and folders in the opposite order."""
    if isinstance(facts, Gpus):
        devices = tuple(replace(gpu, nvlinks=_turned(gpu.nvlinks)) for gpu in reversed(facts.devices))
        pairs = tuple(replace(pair, first=pair.second, second=pair.first) for pair in reversed(facts.pairs))
        return replace(facts, devices=devices, pairs=pairs)
    if isinstance(facts, PciDevices):
        return replace(facts, devices=facts.devices[::-1])
    if isinstance(facts, Host):
        governors, nodes = _turned(facts.cpu_governors), _turned(facts.numa_nodes)
        return replace(facts, cpu_governors=governors, numa_nodes=nodes, disks=facts.disks[::-1])
    return facts


def _turned(items: tuple[Item, ...] | None) -> tuple[Item, ...] | None:
    return None if items is None else items[::-1]


def stated(outcomes: Iterable[Outcome]) -> Counter[tuple[object, ...]]:
    """What kind of outcome there is about what, and what explains it. The sides of a pair have no order."""
    return Counter(
        (type(item), *sorted(getattr(item, "subject", "").split(" - ")), getattr(item, "explained_by", ()))
        for item in outcomes
    )
