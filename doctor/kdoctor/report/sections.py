"""The content of a report for people, as plain values. Every format for people only lays these out.

The order is the same in every format: the families in one line each and the causes (:mod:`kdoctor.report.causes`),
what changed since the last passing run, then every check.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby

from kdoctor.engine.report import Decision, Drift, JudgedFinding, Mark, Report, Result
from kdoctor.model import Status
from kdoctor.records import record
from kdoctor.report.phrases import (
    Label,
    by_family,
    counting,
    describe_criteria,
    describe_gpu_work,
    describe_reason,
    describe_waiver,
    family_title,
    headline,
    instant,
    skipped_together,
)
from kdoctor.text.lists import counted


@record
class Field:
    """A labelled text."""

    label: str
    text: str
    commands: tuple[str, ...] = ()
    """Shell commands that belong to it. They are never wrapped."""
    detail: int = 0
    """The verbosity from which it is shown: 0 always, 1 in the full report, 2 with reasons and sources."""


@record
class Block:
    """One entry of a section."""

    title: str = ""
    """For a check the healthy condition, whatever its status."""
    id: str = ""
    """Id of the check or scenario."""
    note: str = ""
    """Severity of the check, or kind of the scenario."""
    status: Status | None = None
    mark: Mark | None = None
    findings: tuple[str, ...] = ()
    """What is wrong: ``{subject}: {observed}``. If there are any, they are the heading, and not the title."""
    text: str = ""
    fields: tuple[Field, ...] = ()
    """For a check its evidence, labelled with the subject."""
    blocks: tuple[Block, ...] = ()
    """The checks of a scenario, or those that were skipped for the same reason."""

    def leaves(self) -> Iterator[Block]:
        """The block itself, or the innermost blocks in it."""
        if not self.blocks:
            yield self
        for block in self.blocks:
            yield from block.leaves()


@record
class Table:
    """Rows of text."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@record
class Section:
    """A part of the report with a heading."""

    name: str
    """``checks`` (once a family), ``gpus``, ``waived``, ``unused-waivers``, ``policy``."""
    title: str
    text: str = ""
    table: Table | None = None
    fields: tuple[Field, ...] = ()
    blocks: tuple[Block, ...] = ()

    def leaves(self) -> Iterator[Block]:
        """The innermost blocks."""
        for block in self.blocks:
            yield from block.leaves()


def overview(report: Report) -> tuple[Field, ...]:
    """What was checked, against which checklist, and when."""
    entries = {
        Label.TARGET: report.target,
        Label.CHECKLIST: f"{report.checklist.name}, version {report.checklist.version}",
        Label.STARTED: instant(report.started_at),
        Label.LAST_PASSING: instant(report.last_green_at) if report.last_green_at != report.started_at else "",
    }
    return tuple(Field(label=label, text=text) for label, text in entries.items() if text)


def sections(report: Report) -> Iterator[Section]:
    """Every further section of the full report that has content."""
    for family, results in by_family(report.results):
        yield Section(name="checks", title=family_title(family), blocks=tuple(_checks(report, results)))
    rest = (
        Section(
            name="gpus",
            title="GPUs during training",
            fields=tuple(
                Field(label=f"GPU {work.index} ({work.name})", text=describe_gpu_work(work)) for work in report.gpu_work
            ),
        ),
        Section(name="waived", title="Waived", blocks=tuple(_waived(report))),
        Section(
            name="unused-waivers",
            title="Unused waivers",
            fields=tuple(
                Field(label=f"{waiver.check} ({waiver.subject})", text=describe_waiver(waiver))
                for waiver in report.unused_waivers
            ),
        ),
        Section(name="policy", title="Failure policy", blocks=tuple(map(_decision, report.decisions))),
    )
    yield from (section for section in rest if section.table or section.fields or section.blocks)


def _checks(report: Report, results: Iterable[Result]) -> Iterator[Block]:
    """Checks of no requested scenario, then each scenario with the checks that judge it."""
    by_scenario: dict[str, list[Result]] = {note.id: [] for note in report.scenarios}
    others: list[Result] = []
    for result in results:
        by_scenario.get(result.scenario or "", others).append(result)
    yield from _grouped(others)
    for note in report.scenarios:
        if by_scenario[note.id]:
            expected = Field(label=Label.EXPECTED, text=note.expect)
            yield Block(id=note.id, note=note.kind, fields=(expected,), blocks=tuple(_grouped(by_scenario[note.id])))


def _grouped(results: Iterable[Result]) -> Iterator[Block]:
    """Each check; those that were skipped for the same reason are one block."""
    for members in skipped_together(results):
        blocks = tuple(map(check, members))
        if len(blocks) > 1:
            title = f"{counted(len(blocks), 'check')}: {blocks[0].text}"
            yield Block(title=title, status=Status.SKIP, mark=Mark.SKIP, blocks=blocks)
        else:
            yield from blocks


def check(result: Result) -> Block:
    """A check with its evidence. Failures have their details in :func:`failure`."""
    return Block(
        title=result.title,
        id=result.id,
        note=result.severity.value,
        status=result.status,
        mark=result.mark,
        findings=tuple(headline(judged.finding) for judged in counting(result)),
        text=describe_reason(result) if result.status in (Status.SKIP, Status.UNKNOWN) else "",
        fields=tuple(Field(label=evidence.subject, text=evidence.observed) for evidence in result.evidence),
    )


def failure(result: Result) -> list[Block]:
    """The findings of a failed check. Neighbours with the same fix and rollback are one block."""
    found = groupby(counting(result), key=lambda judged: (judged.finding.remedy, judged.finding.rollback))
    groups = [list(group) for _, group in found]
    whole = check(result)
    blocks = []
    for group in groups:
        remedy, rollback = group[0].finding.remedy, group[0].finding.rollback
        fields = list(_expected(group))
        if group is groups[0] and result.why:
            fields.append(Field(label=Label.WHY, text=result.why))
        fields.append(Field(label=Label.FIX, text=remedy.summary, commands=remedy.commands))
        if remedy.look:
            fields.append(Field(label=Label.LOOK, text="", commands=remedy.look))
        fields.append(Field(label=Label.UNDO, text=rollback.why, commands=rollback.commands))
        if group is groups[-1]:
            not_judged = [f"{item.subject}: {item.reason}" for item in result.unjudged]
            fields += [Field(label=Label.NOT_JUDGED, text=text) for text in not_judged]
        blocks.append(_of_check(result, whole, group, fields))
    return blocks


def _expected(group: list[JudgedFinding]) -> Iterator[Field]:
    expected = dict.fromkeys(judged.finding.expected for judged in group)
    if len(expected) == 1:
        yield Field(label=Label.EXPECTED, text=group[0].finding.expected)
    else:
        for judged in group:
            yield Field(label=Label.EXPECTED, text=f"{judged.finding.subject}: {judged.finding.expected}")
    for waiver in dict.fromkeys(judged.waiver for judged in group):
        if waiver:
            yield Field(label=Label.WAIVER, text=describe_waiver(waiver, expired=True))


def _of_check(result: Result, whole: Block, group: Iterable[JudgedFinding], fields: Iterable[Field]) -> Block:
    """Some findings of a check, with the check's name as the last field."""
    name = Field(label=Label.CHECK, text=f"{result.id} ({result.severity.value}): {result.title}")
    findings = tuple(headline(judged.finding) for judged in group)
    return replace(whole, findings=findings, text="", fields=(*fields, name))


def _waived(report: Report) -> Iterator[Block]:
    for result in report.results:
        whole = check(result)
        for judged in result.findings:
            if judged.waiver and not judged.counts:
                fields = [Field(label=Label.WAIVER, text=describe_waiver(judged.waiver))]
                yield _of_check(result, whole, [judged], fields)


def drift_section(drift: Drift | None) -> Section | None:
    """What changed since the last passing run, and what it may explain; None if nothing is known to have changed."""
    if not drift or not (drift.changes or drift.unread):
        return None
    rows = [
        (change.fact, change.old or "absent", change.new or "absent", ", ".join(change.explains))
        for change in drift.changes
    ]
    return Section(
        name="drift",
        title="Changes since the last passing run",
        text=f"Recorded on {instant(drift.recorded)} in {drift.lock}",
        table=Table(head=("Fact", "Recorded", "Current", Label.MAY_EXPLAIN), rows=tuple(rows)) if rows else None,
        fields=tuple(Field(label=Label.NOT_COMPARED, text=text) for text in drift.unread),
    )


def _decision(decision: Decision) -> Block:
    fields = []
    if decision.criteria:
        fields.append(Field(label=Label.RULE, text=describe_criteria(decision)))
    if decision.decides:
        within = f", within {decision.within}" if decision.within else ""
        fields.append(Field(label=Label.DECISION_OWNER, text=decision.decides + within))
    return Block(title=f"{decision.action.capitalize()}: {', '.join(decision.checks)}", fields=tuple(fields))


def plain(fields: Iterable[Field]) -> list[str]:
    """Fields as lines of plain text: ``Fix: ...`` and the indented commands."""
    return [
        line
        for field in fields
        for line in (f"{field.label}: {field.text}".rstrip(), *(f"    {command}" for command in field.commands))
    ]
