import math
import re

from prometheus_client.parser import text_string_to_metric_families

from helpers.reports import cpu_report, gpu_report
from kdoctor.engine.report import Report
from kdoctor.report.formats import render


def samples(report: Report) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Name to labels (without the checklist) to value, as read by the parser of Prometheus."""
    read: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    for family in text_string_to_metric_families(render(report, "prometheus")):
        assert family.type == "gauge"
        assert family.documentation
        for sample in family.samples:
            labels = tuple(sorted(item for item in sample.labels.items() if item[0] != "checklist"))
            assert labels not in read.setdefault(sample.name, {}), "a sample is there twice"
            read[sample.name][labels] = sample.value
    return read


def test_verdict_counts_and_timestamps() -> None:
    read = samples(cpu_report())
    assert read["kdoctor_verdict"] == {(("conclusion", word),): word == "pass" for word in ("pass", "fail", "unknown")}
    assert read["kdoctor_checks"] == {
        (("status", status),): number
        for status, number in {"pass": 3, "warning": 1, "error": 0, "info": 0, "skip": 4, "unknown": 1}.items()
    }
    assert read["kdoctor_run_duration_seconds"] == {(): 34.21}
    # date -u -d 2030-01-02T03:04:05Z +%s
    assert read["kdoctor_run_timestamp_seconds"] == {(): 1893553445}
    assert read["kdoctor_last_green_timestamp_seconds"] == {(): 1893553445}
    assert read["kdoctor_exit_code"] == {(): 0}


def test_each_check_is_in_exactly_one_state() -> None:
    read = samples(gpu_report())["kdoctor_check_status"]
    states: dict[str, dict[str, float]] = {}
    for labels, value in read.items():
        named = dict(labels)
        states.setdefault(named["check"], {})[named["status"]] = value
    assert {check: sum(values.values()) for check, values in states.items()} == {
        item.id: 1 for item in gpu_report().results
    }
    assert states["gpu.visible-to-driver"] == {"pass": 0, "fail": 1, "skip": 0, "unknown": 0}
    assert samples(gpu_report())["kdoctor_check_findings"][("check", "gpu.visible-to-driver"),] == 2


def test_run_without_a_passing_one_has_no_timestamp_of_it() -> None:
    read = samples(gpu_report())
    assert "kdoctor_last_green_timestamp_seconds" not in read
    assert read["kdoctor_recorded_facts_changed"] == {(): 3}


def test_loss_that_is_not_finite_is_nan() -> None:
    losses = samples(cpu_report())["kdoctor_smoke_final_loss"]
    assert losses[("case", "mirrored"), ("scenario", "smoke.baseline")] == 0.66
    assert math.isnan(losses[("case", "starved"), ("scenario", "smoke.uneven-final-batch")])


def test_names_and_units_follow_the_conventions() -> None:
    names = samples(cpu_report()) | samples(gpu_report())
    for name in names:
        assert re.fullmatch(r"kdoctor_[a-z_]+", name)
        assert not name.endswith(("_total", "_count", "_sum", "_bucket", "_ms", "_milliseconds", "_minutes"))
        if any(word in name for word in ("duration", "timestamp", "step")):
            assert name.endswith("_seconds")


def test_every_sample_has_the_checklist_and_no_timestamp() -> None:
    text = render(cpu_report(), "prometheus")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all('checklist="cpu-smoke"' in line for line in lines)
    assert all(len(line.rsplit("} ", 1)[1].split()) == 1 for line in lines)
