"""The topology as text: matrix, tree and choices."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from kdoctor.text.canvas import PLAIN, Canvas
from kdoctor.text.lists import counted
from kdoctor.text.sanitize import clean_line
from kdoctor.text.wrap import wrap
from kdoctor.topology.advice import Advice
from kdoctor.topology.choice import Choice
from kdoctor.topology.layout import Layout, Place
from kdoctor.topology.reason import reason
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
    layout: Layout,
    tree: Sequence[Branch],
    choices: Sequence[tuple[Choice, Advice]],
    *,
    canvas: Canvas = PLAIN,
    is_recorded: bool = False,
) -> str:
    """The text, with a final line feed."""
    lines = ["GPU connections", "", *_matrix(layout), "", *_legend(layout), ""]
    lines += ["GPU locations", "", *_tree(tree, unicode=canvas.unicode), ""]
    lines += _left_out("lost", [place for place in layout.places if place.lost])
    why = "failing a check, if there are enough others"
    always = set.intersection(*({*choice.gpus} for choice, _ in choices)) if choices else set()
    failing = [place for place in layout.places if place.failing and not place.lost]
    lines += _left_out(why, [place for place in failing if place.gpu.index not in always])
    with_reason = [(reason(layout, choice, is_recorded=is_recorded), advice, choice) for choice, advice in choices]
    for (why, advice), members in groupby(with_reason, key=itemgetter(0, 1)):
        lines += [*_group(why, advice, [choice for *_, choice in members], canvas.width), ""]
    return "\n".join(lines)


def _left_out(why: str, places: Sequence[Place]) -> list[str]:
    indices = ", ".join(str(place.gpu.index) for place in places)
    return [f"Not chosen ({why}): GPU {indices}", ""] if places else []


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
        yield f"{indent}{last if is_last else middle}{clean_line(branch.label)}{clean_line(trouble)}"
        yield from _tree(branch.children, indent + ("   " if is_last else bar), unicode=unicode)


def _group(why: str, advice: Advice, choices: Sequence[Choice], width: int) -> Iterator[str]:
    """Choices with the same reason and advice."""
    for choice in choices:
        yield f"{counted(choice.replicas, 'replica')}: GPU {', '.join(map(str, choice.gpus))}"
        variables = [*choice.commands, *(f"export {item}" for item in advice.environment)]
        yield from (f"    {command}" for command in variables)
    yield from wrap(why, width=width, first="  ")
    if advice.cross_device_ops:
        yield f"    MirroredStrategy(cross_device_ops=tf.distribute.{advice.cross_device_ops}())"
    fallback = f" If that hangs or fails, use {advice.fallback}." if advice.fallback else ""
    yield from wrap(f"{advice.why[0].upper()}{advice.why[1:]}.{fallback}", width=width, first="  ")
