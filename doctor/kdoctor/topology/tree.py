"""The machine as a tree: sockets, NUMA nodes, root ports, switches, GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from kdoctor.facts import Host, PciBridge
from kdoctor.records import record
from kdoctor.topology.layout import Layout, Place

_UNKNOWN_LAST = 1 << 16


@record
class Branch:
    """A part of the machine and what is below it."""

    label: str
    children: tuple[Branch, ...] = ()
    trouble: str | None = None
    """The problem, if any: a narrow link, a lost GPU."""


def grow(layout: Layout, host: Host | None = None) -> tuple[Branch, ...]:
    """The tree. Levels that are unknown, or the same for all GPUs, are left out."""
    sockets = {node.index: node.socket for node in (host.numa_nodes or ())} if host else {}

    def socket_of(place: Place) -> int | None:
        return None if place.numa_node is None else sockets.get(place.numa_node)

    places = sorted(layout.places, key=lambda place: (_order(socket_of(place)), _order(place.numa_node)))
    by_socket = groupby(places, key=socket_of)
    branches: list[Branch] = []
    for socket, members in by_socket:
        nodes = tuple(_numa_nodes(list(members)))
        branches += nodes if socket is None else [Branch(label=f"socket {socket}", children=nodes)]
    return tuple(branches)


def _numa_nodes(places: Sequence[Place]) -> Iterable[Branch]:
    for node, members in groupby(places, key=lambda place: place.numa_node):
        children = tuple(_below(list(members), 0))
        yield from children if node is None else [Branch(label=f"NUMA node {node}", children=children)]


def _below(places: Sequence[Place], depth: int) -> Iterable[Branch]:
    """The branches below a bridge. GPUs behind the same next bridge share a branch."""
    for bridge, members in groupby(places, key=lambda place: _bridge(place, depth)):
        inside = list(members)
        if bridge is None:
            yield from (_gpu(place) for place in inside)
        else:
            yield _merged(bridge, depth, tuple(_below(inside, depth + 1)))


def _merged(bridge: str, depth: int, children: tuple[Branch, ...]) -> Branch:
    """A bridge with its children. A bridge with one other bridge below it shares a line with it."""
    label = f"{'root port' if depth == 0 else 'bridge'} {bridge}"
    if len(children) == 1 and children[0].label.startswith("bridge "):
        return Branch(label=f"{label} > {children[0].label.removeprefix('bridge ')}", children=children[0].children)
    return Branch(label=label, children=children)


def _bridge(place: Place, depth: int) -> str | None:
    path: Sequence[PciBridge] = place.device.path if place.device and place.device.path else ()
    return path[depth].bus_id if depth < len(path) else None


def _gpu(place: Place) -> Branch:
    gpu = place.gpu
    width, generation = gpu.pcie_width_max, gpu.pcie_generation_max
    link = f", gen{generation} x{width}" if width and generation else ""
    links = sum(bool(item.active) for item in gpu.nvlinks or ())
    nvlink = f", NV{links}" if links else ""
    address = f" {gpu.bus_id}" if gpu.bus_id else ""
    narrow = f"runs {place.narrow}" if place.narrow else None
    trouble = "lost" if place.lost else narrow or ("in use" if gpu.is_in_use() else None)
    return Branch(label=f"GPU {gpu.index}{address} {gpu.name or '(unknown model)'}{link}{nvlink}", trouble=trouble)


def _order(number: int | None) -> int:
    return _UNKNOWN_LAST if number is None else number
