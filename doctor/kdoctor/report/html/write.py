"""Fills the HTML templates."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from jinja2 import Environment, PackageLoader, StrictUndefined

from kdoctor.engine.report import Report, Training
from kdoctor.model import Status
from kdoctor.report.causes import cause_blocks, note_blocks
from kdoctor.report.html.charts import (
    LINK_KINDS,
    describe_losses,
    gpu_charts,
    gpu_drawing,
    link_kind,
    loss_chart,
    step_chart,
)
from kdoctor.report.phrases import FAMILY_TITLES, INTERRUPTED, STATUS_NAMES, Label, seconds, verdict_line
from kdoctor.report.sections import check, drift_section, failure, overview, sections
from kdoctor.text.canvas import Canvas

_TEMPLATES = Environment(
    loader=PackageLoader("kdoctor.report.html", ""),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
)
_MOST_URGENT = (Status.FAIL, Status.UNKNOWN, Status.PASS, Status.SKIP)


def render_html(report: Report, canvas: Canvas) -> str:
    """The report as one HTML file. Its policy forbids scripts and every request to another host."""
    shown = list(sections(report))
    return _TEMPLATES.get_template("report.html.j2").render(
        report=report,
        verdict_sentence=_sentence(report.verdict.reason),
        duration=seconds(report.duration_s),
        overview=overview(report),
        checks=[section for section in shown if section.name == "checks"],
        causes=cause_blocks(report),
        notes=note_blocks(report),
        drift=drift_section(report.drift),
        sections={section.name: section for section in shown},
        trainings=[
            (scenario, list(cases)) for scenario, cases in groupby(report.trainings, lambda item: item.scenario)
        ],
        gpu_models=[(name, list(members)) for name, members in groupby(report.gpus, lambda gpu: gpu.name)],
        link_kinds=_link_kinds(report),
        link_rows=list(_link_rows(report)),
        label=Label,
        family_titles=FAMILY_TITLES,
        status_names=STATUS_NAMES,
        interrupted=INTERRUPTED,
        caption=_caption,
        loss_chart=loss_chart,
        step_chart=step_chart,
        gpu_charts=gpu_charts,
        gpu_drawing=gpu_drawing,
    )


def render_notebook(report: Report) -> str:
    """The report as one table for a notebook's output: the verdict, then each check, failures first."""
    results = sorted(report.results, key=lambda item: (_MOST_URGENT.index(item.status), -item.severity.rank))
    return _TEMPLATES.get_template("notebook.html.j2").render(
        verdict=verdict_line(report),
        target=report.target,
        rows=[(check(result), failure(result)) for result in results],
        label=Label,
    )


def _sentence(text: str) -> str:
    """With a capital, unless it starts with a check's id."""
    return text if "." in text.split(" ", maxsplit=1)[0] else text[:1].upper() + text[1:]


def _caption(training: Training) -> str:
    replicas = "" if training.replicas is None else f" on {training.replicas} x {training.devices}"
    losses = f": losses {describe_losses(training.losses)}" if training.losses else ""
    dashed = "; dashed: one device" if training.reference_losses else ""
    return f"{training.case} {training.outcome}{replicas}{losses}{dashed}"


def _link_kinds(report: Report) -> list[tuple[str, str]]:
    """The kinds of links on this machine, for the legend."""
    present = {link_kind(link) for link in report.gpu_links}
    return [(kind, description) for kind, description in LINK_KINDS.items() if kind in present]


def _link_rows(report: Report) -> Iterator[list[str]]:
    """A row of link labels for each GPU."""
    labels = {frozenset((link.first, link.second)): link.label for link in report.gpu_links}
    for one in report.gpus:
        name = f"GPU {one.index}{' (lost)' if one.lost else ''}"
        pairs = [frozenset((one.index, other.index)) for other in report.gpus]
        yield [name, *("-" if len(pair) == 1 else labels.get(pair, "?") for pair in pairs)]
