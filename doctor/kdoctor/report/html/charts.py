"""Curves, bars and the drawing of the GPUs, as inline SVG. The page has all of it as text, too."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from markupsafe import Markup, escape

from kdoctor.engine.report import GpuLinkNote, GpuNote, GpuWork, Report, Training
from kdoctor.model import Severity
from kdoctor.text.subjects import gpu_index

_WIDTH, _HEIGHT = 320, 150
_LEFT, _RIGHT, _TOP, _BOTTOM = 48, 310, 14, 126

Losses = Sequence[float | None]


def loss_chart(training: Training) -> Markup:
    """The loss of each epoch, with a cross where it is not finite. The dashed line is the same on one device."""
    finite = [value for value in (*training.losses, *training.reference_losses) if value is not None]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if low == high:
        low, high = low - 0.5, high + 0.5
    epochs = len(training.losses)
    parts = [_axes(low, high, "epoch 1", f"epoch {epochs}" if epochs > 1 else "")]
    parts += _curve(training.losses, low, high, "one")
    if training.reference_losses:  # drawn on top, since both are equal in a correct training
        parts += _curve(training.reference_losses, low, high, "two")
    parts += _dots(training.losses, low, high)
    return _svg(_WIDTH, _HEIGHT, f"losses {describe_losses(training.losses)}", parts)


def describe_losses(losses: Losses) -> str:
    """``1.31, 0.84, not finite``."""
    return ", ".join("not finite" if value is None else f"{value:.4g}" for value in losses)


def time_chart(values: Losses, every_s: float, label: str) -> Markup:
    """A reading over the time of the trainings, from zero up, with a gap where there is none."""
    high = max((value for value in values if value is not None), default=0.0) or 1.0
    parts = [_axes(0.0, high, "0 s", f"{every_s * len(values):.0f} s"), *_curve(values, 0.0, high, "one")]
    return _svg(_WIDTH, _HEIGHT, label, parts)


_CURVES = {
    "utilization_percent": ("utilization, %", 1.0),
    "memory_bytes": ("memory in use, GiB", 1024.0**-3),
    "temperature_c": ("temperature, C", 1.0),
    "power_w": ("power, W", 1.0),
}
"""Curve to its caption and the factor of its values."""


def gpu_charts(work: GpuWork) -> Iterator[tuple[str, Markup]]:
    """Caption and chart of each curve of a GPU."""
    for name, (caption, factor) in _CURVES.items():
        if name in work.curves:
            values = [None if value is None else value * factor for value in work.curves[name]]
            yield caption, time_chart(values, work.every_s, f"GPU {work.index}: {caption} over time")


def step_chart(trainings: Sequence[Training]) -> Markup:
    """A bar for each case's median step, in milliseconds."""
    timed = [(item, item.step_s) for item in trainings if item.step_s is not None]
    longest = max((seconds for _, seconds in timed), default=0.0) or 1.0
    parts = []
    for row, (item, seconds) in enumerate(timed):
        top = 6 + row * 36
        name = f"{item.scenario}/{item.case}: {seconds * 1000:.3g} ms"
        parts.append(f'<text x="4" y="{top + 11}">{escape(name)}</text>')
        parts.append(f'<rect class="bar" x="4" y="{top + 16}" height="10" width="{312 * seconds / longest:.1f}"/>')
    return _svg(_WIDTH, 8 + 36 * len(timed), "median time of a step", parts)


def gpu_drawing(report: Report) -> Markup:
    """The GPUs as boxes in a ring, those of a NUMA node on one band, and a line for each pair, by the kind of its link.

    A cross marks lost GPUs and blocked links. Boxes of other GPUs with a problem have the colour of errors.
    """
    count = len(report.gpus)
    radius = max(110.0, count * 12.5) if count > 1 else 0.0
    middle = radius + 50
    ordered = sorted(report.gpus, key=lambda gpu: (-1 if gpu.numa_node is None else gpu.numa_node, gpu.index))
    angles = {gpu.index: 2 * math.pi * (turn + 0.5) / count for turn, gpu in enumerate(ordered)}
    places = {
        index: (middle + radius * math.sin(angle), middle - radius * math.cos(angle)) for index, angle in angles.items()
    }
    parts = list(_numa_bands(ordered, places, radius))
    # The fastest links are drawn last, over the others.
    lost = lost_gpus(report)
    for link in sorted(report.gpu_links, key=lambda link: _ORDER.index(link_kind(link, lost))):
        parts += _line(places[link.first], places[link.second], link, link_kind(link, lost))
    affected = _affected(report)
    for gpu in report.gpus:
        parts += _node(gpu, *places[gpu.index], affected=gpu.index in affected)
    return _svg(round(2 * middle), round(2 * middle), "GPU topology, as in the table below", parts)


def _affected(report: Report) -> set[int]:
    """The GPUs that a cause names."""
    causes = (cause for cause in report.causes if cause.severity is not Severity.INFO)
    subjects = (subject for cause in causes for problem in cause.problems for subject in problem.subjects)
    return {index for index in map(gpu_index, subjects) if index is not None}


def _numa_bands(ordered: Sequence[GpuNote], places: Mapping[int, tuple[float, float]], radius: float) -> Iterator[str]:
    for node, members in groupby(ordered, key=lambda gpu: gpu.numa_node):
        group = list(members)
        if node is None or len(group) == len(ordered):
            continue
        (x, y), (end_x, end_y) = places[group[0].index], places[group[-1].index]
        wide = int(len(group) - 1 > len(ordered) / 2)
        arc = f"A {radius:.1f} {radius:.1f} 0 {wide} 1 {end_x:.1f} {end_y:.1f}" if len(group) > 1 else "h 0.1"
        yield f'<path class="numa" d="M {x:.1f} {y:.1f} {arc}"><title>NUMA node {node}</title></path>'


_ORDER = ("lost-link", "unknown-link", "blocked", "far", "near", "nvlink")
LINK_KINDS = {
    "nvlink": "NVLink",
    "near": "PCIe switches",
    "far": "through a CPU",
    "blocked": "through host memory, since peer access is blocked",
    "unknown-link": "not reported by the driver",
    "lost-link": "to a GPU that is lost",
}
"""Class of a line to its description."""


def lost_gpus(report: Report) -> frozenset[int]:
    """The indices of the GPUs that are lost."""
    return frozenset(gpu.index for gpu in report.gpus if gpu.lost)


def link_kind(link: GpuLinkNote, lost: frozenset[int] = frozenset()) -> str:
    """The class of a link's line, a key of ``LINK_KINDS``. Nothing passes a link to a GPU in ``lost``."""
    if lost & {link.first, link.second}:
        return "lost-link"
    if link.label.startswith("NV"):
        return "nvlink"
    if link.label.endswith("!"):
        return "blocked"
    if link.label in ("PIX", "PXB", "internal"):
        return "near"
    return "unknown-link" if link.label == "?" else "far"


def _line(one: tuple[float, float], other: tuple[float, float], link: GpuLinkNote, kind: str) -> Iterator[str]:
    title = f"<title>GPU {link.first} - GPU {link.second}: {escape(link.label)}</title>"
    yield (
        f'<line class="{kind}" x1="{one[0]:.1f}" y1="{one[1]:.1f}" x2="{other[0]:.1f}" y2="{other[1]:.1f}">'
        f"{title}</line>"
    )
    if kind == "blocked":
        yield _cross((one[0] + other[0]) / 2, (one[1] + other[1]) / 2, 5, title)


def _node(gpu: GpuNote, x: float, y: float, *, affected: bool) -> Iterator[str]:
    numa = "" if gpu.numa_node is None else f"NUMA {gpu.numa_node}"
    kind = "node lost" if gpu.lost else "node affected" if affected else "node"
    yield (
        f'<rect class="{kind}" x="{x - 29:.1f}" y="{y - 18:.1f}" width="58" height="36" rx="5">'
        f"<title>{escape(gpu.name)}</title></rect>"
    )
    yield f'<text x="{x:.1f}" y="{y - 2:.1f}" text-anchor="middle">GPU {gpu.index}</text>'
    yield f'<text x="{x:.1f}" y="{y + 12:.1f}" text-anchor="middle">{"lost" if gpu.lost else numa}</text>'
    if gpu.lost:
        yield _cross(x + 29, y - 18, 6, "<title>lost</title>")


def _cross(x: float, y: float, half: float, title: str) -> str:
    """An x around a point."""
    side = 2 * half
    steps = f"M{x - half:.1f} {y - half:.1f} l{side:g} {side:g} m0 -{side:g} l-{side:g} {side:g}"
    return f'<path class="bad" d="{steps}">{title}</path>'


def _axes(low: float, high: float, first: str, last: str) -> str:
    end = f'<text x="{_RIGHT}" y="{_HEIGHT - 8}" text-anchor="end">{last}</text>' if last else ""
    return (
        f'<line class="axis" x1="{_LEFT}" y1="{_BOTTOM}" x2="{_RIGHT}" y2="{_BOTTOM}"/>'
        f'<line class="axis" x1="{_LEFT}" y1="{_TOP}" x2="{_LEFT}" y2="{_BOTTOM}"/>'
        f'<text x="{_LEFT - 4}" y="{_TOP + 4}" text-anchor="end">{high:.3g}</text>'
        f'<text x="{_LEFT - 4}" y="{_BOTTOM + 2}" text-anchor="end">{low:.3g}</text>'
        f'<text x="{_LEFT}" y="{_HEIGHT - 8}">{first}</text>{end}'
    )


def _places(losses: Losses, low: float, high: float) -> Iterator[tuple[float, float | None]]:
    """The position of each value; without a height if it is not finite."""
    for number, value in enumerate(losses):
        x = _LEFT + 8 + (_RIGHT - _LEFT - 16) * (number / (len(losses) - 1) if len(losses) > 1 else 0.5)
        yield x, None if value is None else _BOTTOM - (_BOTTOM - _TOP) * (value - low) / (high - low)


def _curve(losses: Losses, low: float, high: float, kind: str) -> list[str]:
    """The polylines between gaps."""
    runs: list[list[str]] = [[]]
    for x, y in _places(losses, low, high):
        if y is None:
            runs.append([])
        else:
            runs[-1].append(f"{x:.1f},{y:.1f}")
    return [f'<polyline class="{kind}" points="{" ".join(run)}"/>' for run in runs if len(run) > 1]


def _dots(losses: Losses, low: float, high: float) -> Iterator[str]:
    for x, y in _places(losses, low, high):
        if y is None:
            yield _cross(x, _BOTTOM - 5, 5, "<title>not finite</title>")
        else:
            yield f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'


def _svg(width: int, height: int, label: str, parts: Sequence[str]) -> Markup:
    """The drawing. Texts in its parts are escaped already."""
    svg = f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
    return Markup(svg)  # noqa: S704
