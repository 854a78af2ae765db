"""What the commands of ``kdoctor fleet`` share: options, and how reports become the fleet's report."""

from __future__ import annotations

import datetime as dt
import os
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from kdoctor.catalog.load import Catalog, load_catalog
from kdoctor.checklist.load import load_checklist
from kdoctor.cli.completion import complete_checklist
from kdoctor.cli.deliver import asked_command, wrote
from kdoctor.cli.options import format_option, option
from kdoctor.cli.stderr import show, standard_input
from kdoctor.engine.verdict import exit_code_for
from kdoctor.errors import UsageError
from kdoctor.facts import Facts
from kdoctor.lock.record import expectations_of
from kdoctor.model import Severity
from kdoctor.output import Outputs, check_writable, parse_outputs, write_atomically
from kdoctor.records import record
from kdoctor.report.json import make_document
from kdoctor.run.assemble import build_report
from kdoctor.run.log import style, warn
from kdoctor.run.plan import Plan, RunOptions
from kdoctor.run.session import Collected
from kdoctor.snapshot.document import loads
from kdoctor.text.canvas import PLAIN, canvas_for
from kdoctor.text.lists import counted, some
from kdoctor_fleet.formats import FORMATS, render
from kdoctor_fleet.merge import Expectation, merge
from kdoctor_fleet.names import expand, read_names
from kdoctor_fleet.node_report import SentReport
from kdoctor_fleet.pairs.record import pair_tests, read_pairs
from kdoctor_fleet.read import STDIN, Gathered, gather
from kdoctor_fleet.report import FleetReport
from kdoctor_fleet.states import Measure
from kdoctor_fleet.verdict import needed_nodes

_LISTS = {"passing.txt": "passing", "failing.txt": "failing"}

MinHealthyOption = Annotated[str | None, option("How many nodes must pass. \\[default: all]", metavar="N|P%")]
ListsOption = Annotated[Path | None, option("Write passing.txt and failing.txt to DIR.", metavar="DIR")]
FleetChecklistOption = Annotated[
    str,
    typer.Option("--checklist", "-c", help="Checklist with checks over all nodes.", autocompletion=complete_checklist),
]
FleetFormatOption = Annotated[str | None, format_option(FORMATS)]


@record
class Delivery:
    """How to judge the reports, and where the fleet's report goes. Wrong options are found before anything runs."""

    catalog: Catalog
    plan: Plan
    outputs: Outputs
    lists: Path | None
    min_healthy: str | None
    verbosity: int

    @classmethod
    def of(
        cls,
        *,
        checklist: str,
        lists: Path | None,
        min_healthy: str | None,
        format: str | None,  # noqa: A002 - the option's name
        output: Sequence[str],
        verbose: int,
        quiet: bool,
        plugin: Sequence[str],
    ) -> Delivery:
        """From the options.

        Raises:
            UsageError: one of them is wrong.
        """
        style.quiet = quiet
        outputs = parse_outputs(output, FORMATS, stdout=format, default="line" if quiet else "terminal")
        needed_nodes(min_healthy, 1)  # raises if it is neither a number nor a percentage
        for name in _LISTS if lists else ():
            check_writable((lists or Path()) / name)
        catalog = load_catalog(plugin)
        plan = RunOptions(checklist=checklist, use_lock=False, command=asked_command(sys.argv[1:])).plan(catalog)
        return cls(catalog=catalog, plan=plan, outputs=outputs, lists=lists, min_healthy=min_healthy, verbosity=verbose)

    def judge(
        self, places: Sequence[str], expectation: Expectation, *, node_checklist: str, begun: float
    ) -> FleetReport:
        """Read the reports and judge them as one fleet.

        Args:
            places: files, folders, or ``-``.
            expectation: which nodes should be there.
            node_checklist: for snapshots, and the measure of reports by a checklist of its name.
            begun: when the command began, by the monotonic clock.
        """
        gathered = gather(places, _judge_snapshot(self.catalog, node_checklist), standard_input())
        if gathered.replaced:
            several = some(sorted(gathered.replaced))
            number = counted(len(gathered.replaced), "node")
            warn(f"kdoctor: {number} sent several reports, the newest counts: {several}")
        now = dt.datetime.now(dt.timezone.utc).isoformat(timespec="seconds")
        names = expectation.names or tuple(gathered.expected) or _of_slurm(gathered)
        expectation = replace(expectation, names=names, min_healthy=self.min_healthy)
        records = [read_pairs(Path(place)) for place in places if place != STDIN]
        pairs = next((pair_tests(record) for record in records if record), None)
        remedies = {check.id: check.remedy for check in self.catalog.checks.values()}
        duration_s = time.monotonic() - begun
        measures = measures_of(gathered, self.catalog, node_checklist)
        found = merge(
            gathered, expectation, self.plan, now, duration_s, pairs=pairs, remedies=remedies, measures=measures
        )
        unexpected = [node.name for node in found.nodes if not node.expected]
        if unexpected:
            number = counted(len(unexpected), "node")
            warn(f"kdoctor: {number} reported but not expected, not used: {some(unexpected)}")
        return found

    def deliver(self, found: FleetReport) -> int:
        """Write the lists, files and stdout; returns the exit code."""
        if self.lists:
            _write_lists(found, self.lists)
        for item in self.outputs.files:
            write_atomically(item.path, render(found, item.format, replace(PLAIN, verbosity=self.verbosity)))
            wrote(item.path)
        canvas = replace(canvas_for(sys.stdout, os.environ), verbosity=self.verbosity)
        show(render(found, self.outputs.stdout, canvas))
        return exit_code_for(found.verdict, self.outputs.stdout)


def expected_nodes(
    expect: str | None, expect_file: Path | None, option: str = "--expect", file_option: str = "--expect-file"
) -> tuple[str, ...]:
    """The nodes that two options name.

    Raises:
        UsageError: both are given, or one does not name nodes.
    """
    if expect is not None and expect_file is not None:
        raise UsageError(f"{option} cannot be used with {file_option}")
    if expect_file is not None:
        return read_names(expect_file)
    return expand(expect, option) if expect is not None else ()


def program_words(text: str) -> tuple[str, ...]:
    """The command that ``--kdoctor`` names.

    Raises:
        UsageError: it is empty, or not a command.
    """
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise UsageError(f"--kdoctor {text}: {error}") from error
    if not words:
        raise UsageError("--kdoctor is empty")
    return words


def measures_of(gathered: Gathered, catalog: Catalog, node_checklist: str) -> dict[str, Measure]:
    """What the checklists ask by which the nodes were judged, as far as they are known here."""
    found: dict[str, Measure] = {}
    for name in sorted(
        {node.name_of_checklist for node in gathered.nodes.values()} & {*catalog.checklists} | {node_checklist}
    ):
        checklist = load_checklist(name, catalog)
        found[checklist.name] = Measure(
            expectations=expectations_of(checklist),
            errors=frozenset(entry.check.id for entry in checklist.entries if entry.severity is Severity.ERROR),
            checks=frozenset(entry.check.id for entry in checklist.entries),
            accepted={entry.check.id: entry.accept_unknown for entry in checklist.entries},
        )
    return found


def _of_slurm(gathered: Gathered) -> tuple[str, ...]:
    """The nodes of the allocation in which this runs, if one of them reported."""
    text = os.environ.get("SLURM_JOB_NODELIST", "")
    if not text:
        return ()
    names = expand(text, "SLURM_JOB_NODELIST")
    return names if any(name in gathered.nodes for name in names) else ()


def _judge_snapshot(catalog: Catalog, checklist: str) -> Callable[[bytes], SentReport]:
    """What makes a report of a snapshot. The checklist is read when the first snapshot needs it."""
    plans: list[Plan] = []

    def judge(content: bytes) -> SentReport:
        snapshot = loads(content, catalog.fact_groups)
        if not plans:
            plans.append(RunOptions(checklist=checklist, use_lock=False).plan(catalog))
        report = build_report(_collected(snapshot.facts, snapshot.created_at), plans[0])
        sent = SentReport.model_validate_json(make_document(report).model_dump_json(by_alias=True))
        # The verdict is of now, and the clock that it is compared with is that of the snapshot.
        return sent.model_copy(update={"started_at": snapshot.created_at})

    return judge


def _collected(facts: Facts, created_at: str) -> Collected:
    return Collected(
        facts=facts,
        target="a snapshot",
        started_at=dt.datetime.now(dt.timezone.utc),
        duration_s=0.0,
        from_snapshot=True,
        recorded_at=created_at,
    )


def _write_lists(found: FleetReport, folder: Path) -> None:
    for file, nodes in _LISTS.items():
        names: tuple[str, ...] = getattr(found, nodes)
        write_atomically(folder / file, "".join(f"{name}\n" for name in names))
        wrote(folder / file)
