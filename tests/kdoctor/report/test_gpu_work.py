"""Samples of the GPUs during the trainings, in each format that shows them."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from helpers.facts import event, gpu_use, sampled_gpu, sampling
from helpers.reports import GPU_WORK, cpu_report, gpu_report
from kdoctor.facts import GpuSampling, GpuSeries, GpuUse
from kdoctor.history import read
from kdoctor.history.record import keep
from kdoctor.history.render import list_trends
from kdoctor.history.store import opened
from kdoctor.report.formats import render
from kdoctor.run.measured import gpu_work
from kdoctor.text.canvas import Canvas

REPORT = gpu_report(gpu_work=GPU_WORK)
HEADING = "GPUs during training"
VALUES = ("43 %", "97 %", "900 MiB", "89 C", "410 of 700 W", "SW Power Cap 3.5 s", "HW Thermal Slowdown 1.6 s")


@pytest.mark.parametrize("name", ["terminal", "markdown", "html", "prometheus"])
def test_report_without_trainings_on_gpus_has_no_section(name: str) -> None:
    written = render(cpu_report(), name)
    assert HEADING not in written
    assert "kdoctor_smoke_gpu" not in written


@pytest.mark.parametrize("name", ["terminal", "markdown"])
def test_text_has_a_line_for_each_gpu(name: str) -> None:
    text = render(REPORT, name, Canvas(width=80, verbosity=1))
    section = text.split(f"{HEADING}\n")[1].split("\n\n###")[0].split("\n\nWaived")[0]
    first, second = " ".join(section.split()).split("- GPU 1")
    assert first.startswith("- GPU 0 (NVIDIA H100 80GB HBM3): ")
    assert all(value in first for value in VALUES)
    assert "4 samples" in second


def test_json_has_the_numbers_and_no_curves() -> None:
    first, second = json.loads(render(REPORT, "json"))["gpu_work"]
    assert first["held_back"] == {"SW Power Cap": 3.5, "HW Thermal Slowdown": 1.6}
    assert (first["peak_temperature_c"], first["peak_memory_bytes"]) == (89, 900 * 2**20)
    assert (second["samples"], second["peak_power_w"]) == (4, None)
    assert "curves" not in first
    assert json.loads(render(cpu_report(), "json"))["gpu_work"] == []


def test_page_draws_each_curve_with_its_gap() -> None:
    written = render(REPORT, "html")
    section = written[written.index(f"<span>{HEADING}</span>") :]
    assert section.count("<svg") == 3
    assert "utilization, %" in section
    assert "power, W" not in section
    lines = re.findall(r'<polyline class="one" points="([^"]*)"', section)
    # Each curve has a gap in the middle; the height from 0 to 100 % is 112, and the bottom is at 126.
    assert len(lines) == 6
    heights = [float(point.split(",")[1]) for line in lines[:2] for point in line.split()]
    assert heights == pytest.approx([126, 70, 14, 98], abs=0.1)
    assert section.count(">0 s<") == 3
    assert ">2 s<" in section  # five points, half a second each


def test_odd_name_is_text_on_the_page() -> None:
    odd = replace(GPU_WORK[0], name="<script>x</script>")
    assert "<script>x" not in render(gpu_report(gpu_work=(odd,)), "html")


def test_prometheus_has_base_units() -> None:
    read = {
        (sample.name, sample.labels["gpu"], sample.labels.get("reason")): sample.value
        for family in text_string_to_metric_families(render(REPORT, "prometheus"))
        for sample in family.samples
        if sample.name.startswith("kdoctor_smoke_gpu_")
    }
    assert read == {
        ("kdoctor_smoke_gpu_peak_utilization_ratio", "0", None): pytest.approx(0.97),
        ("kdoctor_smoke_gpu_mean_utilization_ratio", "0", None): pytest.approx(0.432),
        ("kdoctor_smoke_gpu_peak_memory_bytes", "0", None): 900 * 2**20,
        ("kdoctor_smoke_gpu_peak_temperature_celsius", "0", None): 89,
        ("kdoctor_smoke_gpu_peak_power_watts", "0", None): 410,
        ("kdoctor_smoke_gpu_held_back_seconds", "0", "SW Power Cap"): 3.5,
        ("kdoctor_smoke_gpu_held_back_seconds", "0", "HW Thermal Slowdown"): 1.6,
    }


def test_history_draws_temperature_and_power(tmp_path: Path) -> None:
    place = tmp_path / "history.sqlite"
    for degrees in (60.0, 60.0, 60.0, 60.0, 75.0):
        work = replace(GPU_WORK[0], peak_temperature_c=degrees)
        assert keep(gpu_report(gpu_work=(work,)), "", {"KDOCTOR_HISTORY": str(place)}) is None
    with opened(place, create=False) as connection:
        newest = read.runs(connection, 0, None)[-1]
        lines = list_trends(read.trends(connection, newest, 10), unicode=False)
    assert "GPU 0 peak temperature: 60 -> 75 C, +25 %" in lines
    assert "GPU 0 peak power: 410 -> 410 W, +0 %" in lines


def test_facts_become_gpu_work() -> None:
    series = GpuSeries(every_s=0.5, temperature_c=(41.0, None), power_draw_w=(None, None))
    busy = sampled_gpu(0, during=gpu_use(events=(event(0x1, 9.0), event(0x40, 2.5), event(0x4000, 1.0))), series=series)
    (work,) = gpu_work({GpuSampling: sampling(2, busy, sampled_gpu(1, during=GpuUse()))})
    assert work.held_back == {"HW Thermal Slowdown": 2.5, "reason 0x4000": 1.0}
    assert (work.mean_utilization_percent, work.peak_utilization_percent) == (40, 90)
    assert (work.peak_temperature_c, work.peak_power_w, work.power_limit_w) == (45, 310, 700)
    assert work.curves == {"temperature_c": (41.0, None)}
