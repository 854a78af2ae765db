"""The topology as text of 80 columns: matrix, tree and choices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from kdoctor.text.lists import counted
from kdoctor.text.wrap import wrap
from kdoctor.topology.advice import Advice
from kdoctor.topology.choice import Choice
from kdoctor.topology.layout import Layout, Link
from kdoctor.topology.tree import Branch

_COLUMNS = 12
"""Columns of the matrix that fit."""

_LEGEND = (
    ("NV#", "connected by # NVLinks"),
    ("PIX", "one PCIe switch between them"),
    ("PXB", "several PCIe switches"),
    ("PHB", "a PCIe host bridge (the CPU)"),
    ("NODE", "several host bridges in one NUMA node"),
    ("SYS", "the interconnect between CPU sockets"),
    ("!", "no peer access; data goes through host memory"),
    ("?", "not reported by the driver"),
)


def write_topology(
    layout: Layout, tree: Sequence[Branch], choices: Sequence[tuple[Choice, Advice]], *, unicode: bool = True
) -> str:
    """The text, with a final line feed."""
    lines = ["GPU connections", "", *_matrix(layout), "", *_legend(layout), ""]
    lines += ["GPU locations", "", *_tree(tree, unicode=unicode), ""]
    for choice, advice in choices:
        lines += [*_choice(choice, advice), ""]
    return "\n".join(lines)


def _matrix(layout: Layout) -> Iterator[str]:
    indices = [place.gpu.index for place in layout.places]
    for start in range(0, len(indices), _COLUMNS):
        columns = indices[start : start + _COLUMNS]
        yield "  " + " " * 6 + "".join(f"{f'GPU{index}':>6}" for index in columns)
        for row in indices:
            cells = ("X" if row == column else layout.link(row, column).label for column in columns)
            yield "  " + f"{f'GPU{row}':<6}" + "".join(f"{cell:>6}" for cell in cells)
        if start + _COLUMNS < len(indices):
            yield ""


def _legend(layout: Layout) -> Iterator[str]:
    shown = {link.label for link in layout.links.values()}
    for sign, meaning in _LEGEND:
        if any(_bears(label, sign) for label in shown):
            yield f"  {sign:<5}{meaning}"


def _bears(label: str, sign: str) -> bool:
    if sign == "NV#":
        return label.startswith("NV")
    return label.endswith("!") if sign == "!" else label.rstrip("!") == sign


def _tree(branches: Iterable[Branch], indent: str = "  ", *, unicode: bool) -> Iterator[str]:
    children = list(branches)
    middle, last, bar = ("├─ ", "└─ ", "│  ") if unicode else ("|- ", "`- ", "|  ")
    for branch in children:
        is_last = branch is children[-1]
        trouble = f"  <-- {branch.trouble}" if branch.trouble else ""
        yield f"{indent}{last if is_last else middle}{branch.label}{trouble}"
        yield from _tree(branch.children, indent + ("   " if is_last else bar), unicode=unicode)


def _choice(choice: Choice, advice: Advice) -> Iterator[str]:
    yield f"{counted(choice.replicas, 'replica')}: GPU {', '.join(map(str, choice.gpus))}"
    yield from (f"    {command}" for command in (*choice.commands, *(f"export {item}" for item in advice.environment)))
    yield from wrap(_why(choice), first="  ")
    if advice.cross_device_ops:
        yield f"    MirroredStrategy(cross_device_ops=tf.distribute.{advice.cross_device_ops}())"
    fallback = f" If that hangs or fails, use {advice.fallback}." if advice.fallback else ""
    yield from wrap(f"{advice.why[0].upper()}{advice.why[1:]}.{fallback}", first="  ")


def _why(choice: Choice) -> str:
    if choice.slowest is None or choice.best is None:
        return "The first GPU with a full-width PCIe link."
    return f"Slowest pair: {_pair(choice.slowest)}. {_cost(choice, choice.slowest, choice.best)} {_crossings(choice)}"


def _crossings(choice: Choice) -> str:
    if choice.crossings is None:
        return "Whether pairs cross NUMA nodes is unknown."
    if not choice.crossings:
        return "All GPUs are in one NUMA node."
    return f"{counted(choice.crossings, 'pair crosses', 'pairs cross')} NUMA nodes."


def _cost(choice: Choice, slowest: Link, best: Link) -> str:
    """The slowest pair compared with the best pair of the machine."""
    if slowest.label == "?":
        return "Which pairs are faster is unknown."
    if slowest.quality == best.quality:
        return "No pair of this machine is faster."
    others = f"No other {choice.replicas} GPUs have a faster one. " if choice.sets > 1 else ""
    if slowest.gbs and best.gbs and slowest.gbs < best.gbs:
        return f"{others}The best pair of this machine is {_pair(best)}: this is {slowest.gbs / best.gbs:.0%} of it."
    return f"{others}The best pair of this machine is {_pair(best)}, which is closer."


def _pair(link: Link) -> str:
    speed = f", {link.gbs:.0f} GB/s" if link.gbs else ""
    return f"GPU {link.first}-{link.second} ({link.label}{speed})"
