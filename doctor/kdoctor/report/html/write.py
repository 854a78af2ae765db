"""Fills the HTML templates."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from kdoctor.engine.report import Mark, Report, Training
from kdoctor.report.causes import note_blocks, problem_blocks
from kdoctor.report.html.charts import (
    LINK_KINDS,
    describe_losses,
    gpu_charts,
    gpu_drawing,
    link_kind,
    loss_chart,
    lost_gpus,
    step_chart,
)
from kdoctor.report.html.templates import SHARED, packaged, policy_hash, templates_of
from kdoctor.report.phrases import (
    CONCLUSIONS,
    INTERRUPTED,
    MARK_NAMES,
    SIGNS,
    VERDICT_MARKS,
    Label,
    check_again,
    counts,
    family_title,
    seconds,
    verdict_line,
)
from kdoctor.report.sections import Block, Field, check, drift_section, overview, sections
from kdoctor.text.canvas import Canvas
from kdoctor.text.lists import counted

_TEMPLATES = templates_of(SHARED)


def _sentence(reason: str) -> str:
    """The reason with a capital letter, unless it begins with a check's id."""
    return reason if "." in reason.partition(" ")[0] else reason[:1].upper() + reason[1:]


def render_html(report: Report, canvas: Canvas) -> str:
    """The report as one HTML file. Its policy forbids every request, and every script but the one for copying."""
    shown = list(sections(report))
    script = packaged(SHARED, "copy.js")
    return _TEMPLATES.get_template("report.html.j2").render(
        report=report,
        script=script,
        script_hash=policy_hash(script),
        verdict=report.verdict.conclusion,
        conclusion=CONCLUSIONS[report.verdict.conclusion],
        verdict_sentence=_sentence(report.verdict.reason),
        host=report.node.name if report.node else "",
        totals=counts(report),
        duration=seconds(report.duration_s),
        overview=overview(report),
        checks=[section for section in shown if section.name == "checks"],
        causes=problem_blocks(report),
        anchors={check: cause.checks[0] for cause in report.causes for check in (*cause.checks, *cause.explains)},
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
        check_again=check_again(report),
        known={
            family_title(item.family): item.text for item in report.categories if item.mark in (Mark.PASS, Mark.SKIP)
        },
        mark_names=MARK_NAMES,
        signs=SIGNS,
        chips=_chips,
        interrupted=INTERRUPTED,
        caption=_caption,
        loss_chart=loss_chart,
        step_chart=step_chart,
        gpu_charts=gpu_charts,
        gpu_drawing=gpu_drawing,
    )


def render_notebook(report: Report) -> str:
    """The report for a notebook's output: the verdict and the causes, and folded every check, failures first."""
    problems = problem_blocks(report)
    order = list(_CHIPS)
    checks = [check(result) for result in sorted(report.results, key=lambda result: order.index(result.mark))]
    return _TEMPLATES.get_template("notebook.html.j2").render(
        verdict=VERDICT_MARKS[report.verdict.conclusion],
        verdict_line=verdict_line(report),
        target=report.target,
        problems=[
            (block.mark, block.id, block.findings, [field for field in block.fields if not field.detail])
            for block in problems
        ],
        checks=[(block.mark, block.id, block.findings or (block.title,), _evidence(block)) for block in checks],
        label=Label,
        mark_names=MARK_NAMES,
        signs=SIGNS,
    )


def _evidence(block: Block) -> tuple[Field, ...]:
    reason = (Field(label=Label.NOT_JUDGED, text=block.text),) if block.text else ()
    return (*reason, *block.fields)


_CHIPS = {
    Mark.ERROR: "failed",
    Mark.WARNING: "warning",
    Mark.UNKNOWN: "unknown",
    Mark.PASS: "passed",
    Mark.INFO: "note",
    Mark.SKIP: "skipped",
}


def _chips(marks: Sequence[Mark]) -> list[tuple[Mark, str]]:
    """Each mark with its number of checks, such as ``2 warnings``, worst first."""
    numbers = {mark: marks.count(mark) for mark in _CHIPS}
    plural = (Mark.WARNING, Mark.INFO)
    return [
        (mark, counted(number, _CHIPS[mark]) if mark in plural else f"{number} {_CHIPS[mark]}")
        for mark, number in numbers.items()
        if number
    ]


def _caption(training: Training) -> str:
    replicas = "" if training.replicas is None else f" on {training.replicas} x {training.devices}"
    losses = f": losses {describe_losses(training.losses)}" if training.losses else ""
    dashed = "; dashed: one device" if training.reference_losses else ""
    return f"{training.case} {training.outcome}{replicas}{losses}{dashed}"


def _link_kinds(report: Report) -> list[tuple[str, str]]:
    """The kinds of links on this machine, for the legend."""
    present = {link_kind(link, lost_gpus(report)) for link in report.gpu_links}
    return [(kind, description) for kind, description in LINK_KINDS.items() if kind in present]


def _link_rows(report: Report) -> Iterator[list[str]]:
    """A row of link labels for each GPU."""
    labels = {frozenset((link.first, link.second)): link.label for link in report.gpu_links}
    for one in report.gpus:
        name = f"GPU {one.index}{' (lost)' if one.lost else ''}"
        pairs = [frozenset((one.index, other.index)) for other in report.gpus]
        yield [name, *("-" if len(pair) == 1 else labels.get(pair, "?") for pair in pairs)]
