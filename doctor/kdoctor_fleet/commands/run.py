"""``kdoctor fleet run``."""

import datetime as dt
import os
import shlex
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from kdoctor.cli import options
from kdoctor.cli.completion import beginning_with
from kdoctor.cli.options import option
from kdoctor.commands.again import program
from kdoctor.commands.shell import quoted
from kdoctor.engine.exit_codes import EXIT_INTERRUPTED
from kdoctor.errors import UsageError, one_of
from kdoctor.output import write_atomically
from kdoctor.run.interrupts import ends_as_interrupts
from kdoctor.run.log import log, style, warn
from kdoctor.run.progress import bar, progress
from kdoctor.text.lists import counted
from kdoctor_fleet.commands.common import (
    Delivery,
    FleetChecklistOption,
    FleetFormatOption,
    ListsOption,
    MinHealthyOption,
    expected_nodes,
    program_words,
)
from kdoctor_fleet.commands.pairs import (
    BOTH,
    Across,
    FullMatrixOption,
    PairAddressOption,
    PairFrameworkOption,
    PairPortOption,
    PairsOption,
    PairTimeoutOption,
    train_across,
)
from kdoctor_fleet.launch.collect import Answer, Collection, Limits
from kdoctor_fleet.launch.engine import Engine
from kdoctor_fleet.launch.engines import ENGINES
from kdoctor_fleet.merge import Expectation
from kdoctor_fleet.names import expand, fold
from kdoctor_fleet.pairs.record import FILE as PAIRS
from kdoctor_fleet.run_record import FILE, NODES, FleetRun, NodeOutcome, read_run, report_file

_FORMAT = ("-f", "--format", "-q", "--quiet", "--log-format")
_KEEP_EVERY_S, _NOTE_EVERY_S = 2.0, 0.2
_MARGIN_S = 30.0
"""What a node needs besides its check: to log in, to start Python, to send the report."""

NodeTimeoutOption = Annotated[
    float, typer.Option(min=1, callback=options.check_time_limit, help="Time limit for each node, in seconds.")
]
FleetTimeoutOption = Annotated[
    float | None, option("Time limit for all nodes, in seconds.", min=1, callback=options.check_time_limit)
]


def run(
    check_options: Annotated[
        list[str] | None, typer.Argument(metavar="[-- CHECK OPTIONS]", help="Options of kdoctor check on the nodes.")
    ] = None,
    *,
    engine: Annotated[
        str | None,
        option(
            "What starts kdoctor on the nodes.",
            metavar="|".join(ENGINES),
            autocompletion=lambda incomplete: beginning_with(incomplete, ENGINES),
        ),
    ] = None,
    nodes: Annotated[
        str | None, option("The nodes: node[01-64]. \\[default: the allocation's]", "--nodes", "-w", metavar="NODES")
    ] = None,
    nodes_file: Annotated[Path | None, option("File with the nodes.", metavar="FILE")] = None,
    program: Annotated[
        str, typer.Option("--kdoctor", metavar="COMMAND", help="How kdoctor is started on the nodes.")
    ] = "kdoctor",
    engine_option: Annotated[
        list[str] | None, option("Option for ssh, srun, kubectl or Ray (repeatable).", metavar="OPTION")
    ] = None,
    reports: Annotated[
        Path | None, option("Keep the reports in DIR. \\[default: kdoctor-fleet-TIME]", metavar="DIR")
    ] = None,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="With the same options and --reports: ask the nodes that have not reported."),
    ] = False,
    fan_out: Annotated[int, typer.Option(min=1, max=1024, help="How many nodes to check at once.")] = 64,
    node_timeout: NodeTimeoutOption = 1800.0,
    timeout: FleetTimeoutOption = None,
    pairs: PairsOption = False,
    full_matrix: FullMatrixOption = False,
    pair_framework: PairFrameworkOption = BOTH,
    pair_timeout: PairTimeoutOption = 120.0,
    pair_port: PairPortOption = 23000,
    pair_address: PairAddressOption = None,
    min_healthy: MinHealthyOption = None,
    lists: ListsOption = None,
    checklist: FleetChecklistOption = "fleet",
    format: FleetFormatOption = None,  # noqa: A002 - the option's name
    output: options.OutputOption = None,
    verbose: options.VerboseOption = 0,
    quiet: options.QuietOption = False,
    log_format: options.LogFormatOption = "text",
    plugin: options.PluginOption = None,
) -> None:
    """Run kdoctor check on every node, each for itself, and judge the nodes by their reports.

    Exit codes: 0 enough nodes passed; 1 too few; 2 usage error; 3 inconclusive; 130 interrupted.
    """
    style.as_json, begun = log_format == "json", time.monotonic()
    delivery = Delivery.of(
        checklist=checklist,
        lists=lists,
        min_healthy=min_healthy,
        format=format,
        output=output or (),
        verbose=verbose,
        quiet=quiet,
        plugin=plugin or (),
    )
    across = Across(pairs, full_matrix, pair_framework, pair_timeout, pair_port, pair_address)
    asked = _Asked(engine, nodes, nodes_file, program, tuple(engine_option or ()), tuple(check_options or ()))
    folder, plan, chosen = _planned(reports, asked, resume=resume)
    limits = Limits(fan_out=fan_out, node_s=node_timeout, total_s=timeout)
    across.refuse(chosen, plan.nodes[0])
    with ends_as_interrupts():
        interrupted = _ask(folder, plan, chosen, limits)
        if across.wanted and not interrupted:
            interrupted = train_across(folder, plan, chosen, across, _passing(delivery, folder, plan), limits)
        chosen.end()
    _judge(delivery, folder, plan, chosen, min_healthy=min_healthy, begun=begun, interrupted=interrupted)


def _passing(delivery: Delivery, folder: Path, plan: FleetRun) -> tuple[str, ...]:
    """The nodes that passed, before they train with each other."""
    (folder / PAIRS).unlink(missing_ok=True)  # an earlier record would keep nodes from being paired again
    expectation, begun = Expectation(names=plan.nodes), time.monotonic()
    return delivery.judge([str(folder)], expectation, node_checklist=options.DEFAULT_CHECKLIST, begun=begun).passing


def _judge(
    delivery: Delivery,
    folder: Path,
    plan: FleetRun,
    engine: Engine,
    *,
    min_healthy: str | None,
    begun: float,
    interrupted: bool,
) -> NoReturn:
    again = replace(delivery.plan, command=_again(plan, min_healthy))
    expectation = Expectation(
        names=plan.nodes, engine=engine.words, again=quoted(*program(), "fleet", "merge", str(folder))
    )
    found = replace(delivery, plan=again).judge(
        [str(folder)], expectation, node_checklist=options.DEFAULT_CHECKLIST, begun=begun
    )
    if interrupted:
        verdict = replace(found.verdict, exit_code=EXIT_INTERRUPTED)
        found = replace(found, interrupted=True, verdict=verdict)
    code = delivery.deliver(found)
    _hint(folder, plan)
    raise typer.Exit(code)


@dataclass(frozen=True)
class _Asked:
    engine: str | None
    nodes: str | None
    nodes_file: Path | None
    program: str
    engine_options: tuple[str, ...]
    options: tuple[str, ...]


def _planned(reports: Path | None, asked: _Asked, *, resume: bool) -> tuple[Path, FleetRun, Engine]:
    """A new run, or one that goes on: its folder, its record and its engine.

    What is executed comes from the options. A record that was left in a folder is only compared with them.

    Raises:
        UsageError: an option is missing or wrong, or differs from the record, or the folder has another run.
    """
    if asked.engine is None:
        raise UsageError("--engine is missing", hint=f"Available: {', '.join(ENGINES)}")
    name = one_of("--engine", asked.engine, tuple(ENGINES))
    words = program_words(asked.program)
    _refuse_formats(asked.options)
    if name == "kubernetes" and (asked.options or asked.program != "kdoctor"):
        hint = "Give them to kdoctor fleet manifest, which starts the pods."
        raise UsageError("--engine kubernetes only collects: it takes no --kdoctor and no options after --", hint=hint)
    engine = ENGINES[name](asked.engine_options)
    now = dt.datetime.now(dt.timezone.utc)
    folder = reports or Path(f"kdoctor-fleet-{now:%Y%m%dT%H%M%SZ}")
    recorded = read_run(folder)
    names = expected_nodes(asked.nodes, asked.nodes_file, "--nodes", "--nodes-file")
    if not names:
        text = engine.nodes(os.environ)
        if not text:
            raise UsageError("no nodes are named", hint="Name them: --nodes 'node[01-64]'")
        # A scheduler may have removed some meanwhile.
        names = recorded.nodes if resume and recorded else expand(text, name)
    try:
        (folder / NODES).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--reports {folder}: {error.strerror or error}") from error
    plan = FleetRun(
        engine=name,
        engine_options=asked.engine_options,
        program=words,
        options=asked.options,
        nodes=names,
        started_at=now.isoformat(timespec="seconds"),
        outcomes={},
    )
    if resume:
        return folder, _resumed(folder, plan, recorded), engine
    if recorded:
        hint = f"Continue it: {_again(plan, None, '--resume', '--reports', str(folder))}"
        raise UsageError(f"{folder} has the reports of another run", hint=hint)
    return folder, plan, engine


def _resumed(folder: Path, plan: FleetRun, recorded: FleetRun | None) -> FleetRun:
    """The plan, with what came of it so far.

    Raises:
        UsageError: the folder has no run, or one with other options.
    """
    if recorded is None:
        raise UsageError(f"--resume: {folder} has no run", hint="Name the folder of the run: --resume --reports DIR")
    for name in ("engine", "engine_options", "program", "options", "nodes"):
        ours, theirs = getattr(plan, name), getattr(recorded, name)
        if ours != theirs:
            shown = fold(theirs) if name == "nodes" else theirs if name == "engine" else shlex.join(theirs) or "none"
            raise UsageError(
                f"--resume: the run in {folder} has other {name.replace('_', ' ')} ({shown})",
                hint="Repeat the command of that run, with --resume and --reports.",
            )
    return plan.model_copy(update={"started_at": recorded.started_at, "outcomes": recorded.outcomes})


def _refuse_formats(check_options: Sequence[str]) -> None:
    """Each node writes its report as JSON to stdout, so nothing else may go there."""
    for word in check_options:
        if word.partition("=")[0] in _FORMAT:
            raise UsageError(f"{word} cannot be used on the nodes, whose reports are JSON")


def _ask(folder: Path, plan: FleetRun, engine: Engine, limits: Limits) -> bool:
    """Ask the nodes that have not reported, and keep the record; returns whether the user interrupted it."""
    nodes = [node for node in plan.nodes if not report_file(folder, node).exists()]
    outcomes = {node: outcome for node, outcome in plan.outcomes.items() if outcome.reported}
    collection = Collection(
        engine,
        lambda node, deadline_s: _command(plan, node, deadline_s),
        limits,
        lambda node, content: write_atomically(report_file(folder, node), content),
    )

    def keep() -> None:
        write_atomically(folder / FILE, plan.model_copy(update={"outcomes": outcomes}).to_json())

    running: tuple[str, ...] = ()
    kept_at, noted_at, done = 0.0, 0.0, len(plan.nodes) - len(nodes)
    try:
        with progress() as shown, closing(collection.run(nodes)) as answers:
            for answer in answers:
                if answer is not None:
                    outcomes[answer.node] = NodeOutcome(
                        reported=not answer.reason,
                        reason=answer.reason,
                        asked_at=answer.asked_at,
                        seconds=round(answer.seconds, 1),
                    )
                    done += 1
                    _say(answer)
                running = tuple(collection.running)
                if time.monotonic() - noted_at > _NOTE_EVERY_S:
                    shown.note(f"{bar(done, len(plan.nodes))} {fold(running)}")
                    noted_at = time.monotonic()
                if time.monotonic() - kept_at > _KEEP_EVERY_S:
                    keep()
                    kept_at = time.monotonic()
    except KeyboardInterrupt:
        warn("kdoctor: interrupted; the reports so far are kept")
        outcomes |= {
            node: NodeOutcome(reported=False, reason="the run was interrupted", seconds=0.0)
            for node in running
            if node not in outcomes
        }
        return True
    finally:
        keep()
    return False


def _command(plan: FleetRun, node: str, deadline_s: float) -> list[str]:
    """What a node runs. Its check ends by itself before the node's deadline, with what it knows."""
    own = any(option.partition("=")[0] == "--timeout" for option in plan.options)
    limit = () if own else ("--timeout", f"{max(deadline_s - _MARGIN_S, deadline_s / 2):.0f}")
    fixed = ("check", "--format", "json", "--quiet", "--no-history", *limit)
    return ["env", f"KDOCTOR_NODE={node}", *plan.program, *fixed, *plan.options]


def _again(plan: FleetRun, min_healthy: str | None, *more: str) -> str:
    """The command of this run, from its options."""
    words = [*program(), "fleet", "run", "--engine", plan.engine, "--nodes", fold(plan.nodes)]
    if plan.program != ("kdoctor",):
        words += ["--kdoctor", shlex.join(plan.program)]
    words += [f"--engine-option={option}" for option in plan.engine_options]
    words += ["--min-healthy", min_healthy] if min_healthy else []
    return quoted(*words, *more, *(["--", *plan.options] if plan.options else []))


def _say(answer: Answer) -> None:
    if style.as_json:
        log(
            "node",
            level="warning" if answer.reason else "info",
            node=answer.node,
            verdict=answer.verdict or None,
            reason=answer.reason or None,
            seconds=round(answer.seconds, 1),
        )
    elif not style.quiet:
        warn(f"{answer.node}: {answer.verdict or 'no report'}, {answer.reason or f'{answer.seconds:.0f} s'}")


def _hint(folder: Path, plan: FleetRun) -> None:
    if style.quiet:
        return
    kept = read_run(folder)
    silent = kept.silent(folder) if kept else {}
    warn(f"Reports: {folder}", level="info", event="wrote")
    if silent:
        again = _again(plan, None, "--resume", "--reports", str(folder))
        warn(f"To ask {counted(len(silent), 'silent node')} of {len(plan.nodes)} again: {again}")
