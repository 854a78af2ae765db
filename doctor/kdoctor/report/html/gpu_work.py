"""What the GPUs did while models were trained on them, as curves over time."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from kdoctor.engine.report import GpuWork, Report
from kdoctor.report.html.charts import time_chart
from kdoctor.report.phrases import gpu_work_words

_CURVES = {
    "utilization_percent": ("utilisation, %", 1.0),
    "memory_bytes": ("memory in use, GiB", 1024.0**-3),
    "temperature_c": ("temperature, degrees C", 1.0),
    "power_w": ("power, W", 1.0),
}
"""Curve to its caption and what its values are multiplied with."""


def gpu_work_sections(report: Report) -> Iterator[str]:
    """A figure for each curve of each GPU, under what it amounts to."""
    if report.gpu_work:
        yield "<h2>GPUs during the trainings</h2>"
    for work in report.gpu_work:
        yield f"<h3>GPU {work.index} {escape(work.name)}</h3><p>{escape(gpu_work_words(work))}</p>"
        yield '<div class="charts">'
        yield from _figures(work)
        yield "</div>"


def _figures(work: GpuWork) -> Iterator[str]:
    for name, (caption, factor) in _CURVES.items():
        if name in work.curves:
            values = [None if value is None else value * factor for value in work.curves[name]]
            chart = time_chart(values, work.every_s, f"GPU {work.index}: {caption} over time")
            yield f"<figure><figcaption>{caption}</figcaption>{chart}</figure>"
