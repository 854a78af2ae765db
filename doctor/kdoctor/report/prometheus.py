"""Text for Prometheus, through node_exporter's textfile collector.

Names and units follow https://prometheus.io/docs/practices/naming/: base units, a suffix that names the unit, and
timestamps as seconds since 1970 (the age is ``time() - kdoctor_last_green_timestamp_seconds``). Each possible state has
a sample of 0 or 1, so that the end of a state is visible. Every sample has the label ``checklist``, so that the files
of two checklists never collide.
"""

import datetime as dt
import math
from collections.abc import Iterable, Mapping, Sequence

from kdoctor.engine.report import Conclusion, Report, Training
from kdoctor.model import Status
from kdoctor.report.phrases import counting
from kdoctor.text.canvas import Canvas
from kdoctor.version import __version__

Sample = tuple[Mapping[str, str], float]
"""Labels and value."""


def render_prometheus(report: Report, canvas: Canvas) -> str:
    """The report as gauges in the text exposition format, version 0.0.4, without sample timestamps."""
    checklist = {"checklist": report.checklist.name}
    return "".join(family(name, text, samples, checklist) for name, text, samples in families(report))


def families(report: Report) -> Iterable[tuple[str, str, Sequence[Sample]]]:
    """Name without prefix, help text and samples of each gauge."""
    verdict = report.verdict.conclusion
    yield (
        "info",
        "Version of kdoctor and of the checklist that made this file.",
        [({"version": __version__, "checklist_version": str(report.checklist.version)}, 1)],
    )
    yield (
        "verdict",
        "Whether the last run had this conclusion: 1 or 0.",
        [({"conclusion": item.value}, item is verdict) for item in Conclusion],
    )
    yield "exit_code", "The exit code of the last run of kdoctor check.", [({}, report.verdict.exit_code)]
    yield (
        "checks",
        "Number of checks of the last run by status, and of failed ones by severity.",
        [({"status": mark.value}, number) for mark, number in report.marks().items()],
    )
    yield (
        "check_status",
        "Whether the check had this status in the last run: 1 or 0.",
        [
            ({"check": item.id, "severity": item.severity.value, "status": status.value}, item.status is status)
            for item in report.results
            for status in Status
        ],
    )
    yield (
        "check_findings",
        "Number of findings, without waived ones.",
        [({"check": item.id}, len(counting(item))) for item in report.results],
    )
    yield (
        "check_duration_seconds",
        "Time that the evaluation of the check took.",
        [({"check": item.id}, item.duration_s) for item in report.results],
    )
    yield "run_duration_seconds", "Time that the whole run took.", [({}, report.duration_s)]
    yield "run_timestamp_seconds", "When the last run started.", _instant(report.started_at)
    yield (
        "last_green_timestamp_seconds",
        "When the last passing run in the history started.",
        _instant(report.last_green_at),
    )
    yield "recorded_facts_changed", "Number of recorded facts that have changed.", _drift(report)
    yield (
        "smoke_step_seconds",
        "Median time of a training step after the first epoch.",
        [(_names(item), item.step_s) for item in report.trainings if item.step_s is not None],
    )
    yield (
        "smoke_final_loss",
        "Loss of a smoke training's last epoch; NaN where it is not finite.",
        [
            (_names(item), math.nan if item.losses[-1] is None else item.losses[-1])
            for item in report.trainings
            if item.losses
        ],
    )
    yield from _gpu_work(report)


_GPU_GAUGES = (
    ("peak_utilization_ratio", "Peak share of time in which a kernel ran", "peak_utilization_percent", 0.01),
    ("mean_utilization_ratio", "Mean share of time in which a kernel ran", "mean_utilization_percent", 0.01),
    ("peak_memory_bytes", "Peak memory in use", "peak_memory_bytes", 1.0),
    ("peak_temperature_celsius", "Peak temperature", "peak_temperature_c", 1.0),
    ("peak_power_watts", "Peak power draw", "peak_power_w", 1.0),
)


def _gpu_work(report: Report) -> Iterable[tuple[str, str, Sequence[Sample]]]:
    for name, text, field, factor in _GPU_GAUGES:
        read = [({"gpu": str(work.index)}, getattr(work, field)) for work in report.gpu_work]
        samples: list[Sample] = [(labels, value * factor) for labels, value in read if value is not None]
        yield f"smoke_gpu_{name}", f"{text} of a GPU during the smoke trainings.", samples
    yield (
        "smoke_gpu_held_back_seconds",
        "Time for which a GPU's clocks were held back during the smoke trainings, by nvidia-smi's reason.",
        [
            ({"gpu": str(work.index), "reason": reason}, seconds)
            for work in report.gpu_work
            for reason, seconds in work.held_back.items()
        ],
    )


def _drift(report: Report) -> list[Sample]:
    return [({}, len(report.drift.changes))] if report.drift else []


def _names(training: Training) -> dict[str, str]:
    return {"scenario": training.scenario, "case": training.case}


def _instant(text: str) -> list[Sample]:
    """Seconds since 1970 of an ISO 8601 timestamp; nothing if there is none."""
    if not text:
        return []
    # Python 3.10 does not parse the suffix Z.
    return [({}, dt.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp())]


def family(name: str, text: str, samples: Sequence[Sample], common: Mapping[str, str]) -> str:
    """The gauge ``kdoctor_<name>`` with its help text and samples; nothing without samples."""
    if not samples:
        return ""
    full = f"kdoctor_{name}"
    lines = [f"# HELP {full} {text}", f"# TYPE {full} gauge"]
    lines += [f"{full}{{{_labels({**common, **labels})}}} {_number(value)}" for labels, value in samples]
    return "\n".join(lines) + "\n"


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escape(value)}"' for name, value in labels.items())


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return "NaN" if math.isnan(value) else repr(float(value))
