"""The topology in words: matrix, tree and choices, for a screen of 80 columns and for a log."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from kdoctor.topology.advice import Advice
from kdoctor.topology.choice import Choice
from kdoctor.topology.layout import Layout, Link
from kdoctor.topology.tree import Branch

_WIDTH = 80
_COLUMNS = 12
"""Columns of the matrix that fit."""

_LEGEND = (
    ("NV#", "connected by that many NVLinks"),
    ("PIX", "one PCIe switch between them"),
    ("PXB", "several PCIe switches"),
    ("PHB", "a host bridge, that is the CPU"),
    ("NODE", "several host bridges of one NUMA node"),
    ("SYS", "the link between the sockets"),
    ("!", "peer access is blocked: data go through the host's memory"),
    ("?", "the driver does not say"),
)


def write_topology(
    layout: Layout, tree: Sequence[Branch], choices: Sequence[tuple[Choice, Advice]], *, unicode: bool = True
) -> str:
    """The whole page."""
    lines = ["GPUs and what connects them", "", *_matrix(layout), "", *_legend(layout), ""]
    lines += ["Where they sit", "", *_tree(tree, unicode=unicode), ""]
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
    one = choice.replicas == 1
    yield f"For {choice.replicas} replica{'' if one else 's'}: GPU {', '.join(map(str, choice.gpus))}"
    yield from (f"    {command}" for command in (*choice.commands, *(f"export {item}" for item in advice.environment)))
    yield from _wrapped(_why(choice))
    if advice.cross_device_ops:
        yield f"    MirroredStrategy(cross_device_ops=tf.distribute.{advice.cross_device_ops}())"
    fallback = f" If that hangs or fails: {advice.fallback}." if advice.fallback else ""
    yield from _wrapped(f"{advice.why}.{fallback}")


def _why(choice: Choice) -> str:
    if choice.slowest is None or choice.best is None:
        return "the first GPU whose link is whole."
    others = f"; no other {choice.replicas} GPUs have a better one" if choice.sets > 1 else ""
    slowest = f"its slowest pair is {_pair(choice.slowest)}{others}"
    return f"{slowest}. {_cost(choice.slowest, choice.best)} {_crossings(choice.crossings)}"


def _crossings(crossings: int | None) -> str:
    if crossings is None:
        return "How many pairs cross NUMA nodes is not known."
    return f"{crossings or 'No'} {'pair crosses' if crossings == 1 else 'pairs cross'} NUMA nodes."


def _cost(slowest: Link, best: Link) -> str:
    """What the slowest pair has less than the best pair of the whole machine."""
    if slowest.quality == best.quality:
        return "No pair of this machine is better."
    if slowest.gbs and best.gbs and slowest.gbs < best.gbs:
        return f"The best pair of this machine is {_pair(best)}: this is {slowest.gbs / best.gbs:.0%} of it."
    return f"The best pair of this machine is {_pair(best)}: as wide, but nearer."


def _pair(link: Link) -> str:
    speed = f", {link.gbs:.0f} GB/s" if link.gbs else ""
    return f"{link.first}-{link.second} ({link.label}{speed})"


def _wrapped(text: str) -> Iterator[str]:
    yield from textwrap.wrap(
        f"{text[:1].upper()}{text[1:]}",
        _WIDTH,
        initial_indent="  ",
        subsequent_indent="  ",
        break_on_hyphens=False,
    )
