"""Curves, bars and the drawing of the GPUs, as inline SVG. The page has all of it as text, too."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from markupsafe import Markup, escape

from kdoctor.engine.report import GpuLinkNote, GpuNote, GpuWork, Report, Training

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
    """The GPUs in a ring, and a line for each pair, by the kind of its link."""
    middle, radius = 180.0, 130.0
    count = len(report.gpus)
    places = {
        gpu.index: (
            middle + radius * math.sin(2 * math.pi * turn / count) * (count > 1),
            middle - radius * math.cos(2 * math.pi * turn / count) * (count > 1),
        )
        for turn, gpu in enumerate(report.gpus)
    }
    # The fastest links are drawn last, over the others.
    ordered = sorted(report.gpu_links, key=lambda link: _ORDER.index(link_kind(link)))
    parts = [_line(places[link.first], places[link.second], link) for link in ordered]
    for gpu in report.gpus:
        parts += _node(gpu, *places[gpu.index])
    return _svg(360, 360, "GPU topology, as in the table below", parts)


_ORDER = ("unknown-link", "blocked", "far", "near", "nvlink")
LINK_KINDS = {
    "nvlink": "NVLink",
    "near": "PCIe switches",
    "far": "through a CPU",
    "blocked": "through host memory, since peer access is blocked",
    "unknown-link": "not reported by the driver",
}
"""Class of a line to its description."""


def link_kind(link: GpuLinkNote) -> str:
    """The class of a link's line, a key of ``LINK_KINDS``."""
    if link.label.startswith("NV"):
        return "nvlink"
    if link.label.endswith("!"):
        return "blocked"
    if link.label in ("PIX", "PXB", "internal"):
        return "near"
    return "unknown-link" if link.label == "?" else "far"


def _line(one: tuple[float, float], other: tuple[float, float], link: GpuLinkNote) -> str:
    title = f"<title>GPU {link.first} - GPU {link.second}: {escape(link.label)}</title>"
    return (
        f'<line class="{link_kind(link)}" x1="{one[0]:.1f}" y1="{one[1]:.1f}" x2="{other[0]:.1f}" '
        f'y2="{other[1]:.1f}">{title}</line>'
    )


def _node(gpu: GpuNote, x: float, y: float) -> Iterator[str]:
    numa = "" if gpu.numa_node is None else f"NUMA {gpu.numa_node}"
    below = "lost" if gpu.lost else numa
    kind = "node lost" if gpu.lost else "node"
    yield f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="32"><title>{escape(gpu.name)}</title></circle>'
    yield f'<text x="{x:.1f}" y="{y - 1:.1f}" text-anchor="middle">GPU {gpu.index}</text>'
    yield f'<text x="{x:.1f}" y="{y + 13:.1f}" text-anchor="middle">{below}</text>'


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
            top = _BOTTOM - 5
            yield f'<path class="bad" d="M{x - 5:.1f} {top - 5} l10 10 m0 -10 l-10 10"><title>not finite</title></path>'
        else:
            yield f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="3"/>'


def _svg(width: int, height: int, label: str, parts: Sequence[str]) -> Markup:
    """The drawing. Texts in its parts are escaped already."""
    svg = f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}">{"".join(parts)}</svg>'
    return Markup(svg)  # noqa: S704
