"""The command line: it wires the parts together and decides nothing.

Everything but typer is imported inside the commands, so that ``--help`` answers at once.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

import kdoctor
from kdoctor.errors import UsageError
from kdoctor.model import Severity

if TYPE_CHECKING:
    from kdoctor.catalog import Catalog
    from kdoctor.checklist import Checklist
    from kdoctor.examination import Examination
    from kdoctor.judge import FactTable, PlannedCheck

DEFAULT_CHECKLIST = "multi-gpu-keras"
DEFAULT_TIMEOUT_S = 1800.0

_FORMATS = "terminal|json|junit|markdown"

app = typer.Typer(
    name="kdoctor",
    help="Examines a machine and a Python environment before a multi-GPU Keras job: may it start here?",
    epilog="Start with: kdoctor check --checklist cpu-smoke",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
checklist_app = typer.Typer(
    help="Read and validate checklists.",
    epilog="Example: kdoctor checklist validate ci/gpu-node.yaml",
    no_args_is_help=True,
)
app.add_typer(checklist_app, name="checklist")

PythonOption = Annotated[
    str | None,
    typer.Option(
        "--python",
        help="The interpreter to examine: a path, an environment's folder, or a name on PATH. "
        "Otherwise the active environment's, otherwise kdoctor's own.",
        show_default=False,
    ),
]
ChecklistOption = Annotated[
    str, typer.Option("--checklist", "-c", help="A shipped checklist's name, or the path of your own.")
]
PluginOption = Annotated[
    list[str] | None,
    typer.Option("--plugin", help="module:attribute of further checks (repeatable).", show_default=False),
]
ReplicasOption = Annotated[
    int | None,
    typer.Option(
        "--replicas", min=1, max=64, help="Train on this many logical CPU devices, whatever the checklist says.",
        show_default=False,
    ),
]
TimeoutOption = Annotated[float, typer.Option("--timeout", min=1, help="Seconds for the whole run.")]
NoSmokeOption = Annotated[bool, typer.Option("--no-smoke", help="Leave the trainings out.")]


def main() -> None:
    """Run the command line, and turn every error into one screen and an exit code."""
    with _errors_in_words():
        app()


@contextmanager
def _errors_in_words() -> Iterator[None]:
    """No traceback for what a person can mend; a short one-line report for what is kdoctor's own fault."""
    import os

    from kdoctor.judge import EXIT_INTERNAL, EXIT_INTERRUPTED, EXIT_USAGE

    try:
        yield
    except UsageError as error:
        _complain(f"kdoctor: {error}")
        raise SystemExit(EXIT_USAGE) from None
    except BrokenPipeError:
        # The reader of our output went away (`| head`): nobody is left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(EXIT_INTERNAL) from None
    except KeyboardInterrupt:
        _complain("kdoctor: interrupted")
        raise SystemExit(EXIT_INTERRUPTED) from None
    except Exception as error:
        if os.environ.get("KDOCTOR_DEBUG"):
            raise
        _complain(
            f"kdoctor itself failed: {type(error).__name__}: {error}\n"
            "This is a defect of kdoctor. Run again with KDOCTOR_DEBUG=1 for the traceback, and report it."
        )
        raise SystemExit(EXIT_INTERNAL) from None


def _complain(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201 - plain, so that it never fails and never wraps


def _version(value: bool) -> None:  # noqa: FBT001 - typer's callback
    if value:
        typer.echo(f"kdoctor {kdoctor.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    *, version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False
) -> None:
    pass


@app.command(epilog="Example: kdoctor check --no-smoke && python train.py")
def check(  # noqa: PLR0913 - one parameter an option
    *,
    checklist: ChecklistOption = DEFAULT_CHECKLIST,
    python: PythonOption = None,
    select: Annotated[
        list[str] | None,
        typer.Option(help="Only these checks: ids, families or globs (repeatable).", show_default=False),
    ] = None,
    skip: Annotated[
        list[str] | None, typer.Option(help="Not these checks: ids, families or globs (repeatable).", show_default=False)
    ] = None,
    no_smoke: NoSmokeOption = False,
    replicas: ReplicasOption = None,
    fail_on: Annotated[Severity, typer.Option(help="The least severity that fails the run.")] = Severity.ERROR,
    allow_unknown: Annotated[bool, typer.Option("--allow-unknown", help="Accept what could not be judged.")] = False,
    format: Annotated[  # noqa: A002 - the option's name
        str | None,
        typer.Option(
            "--format", "-f", metavar=_FORMATS, help="What stdout carries: terminal, unless given.", show_default=False
        ),
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option(
            "--output", "-o", metavar="FORMAT=FILE", help="Write a report there, too (repeatable).", show_default=False
        ),
    ] = None,
    snapshot: Annotated[
        Path | None, typer.Option(help="Judge this recorded snapshot instead of this machine.", show_default=False)
    ] = None,
    save_snapshot: Annotated[
        Path | None, typer.Option(help="Record the facts that were judged in this file.", show_default=False)
    ] = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT_S,
    plugin: PluginOption = None,
) -> None:
    """Examine this machine and train on it: may the job start here?

    Exit codes: 0 passed; 1 a check failed; 2 wrong usage or a broken checklist; 3 nothing failed, but something that
    matters could not be judged; 4 kdoctor itself failed; 130 interrupted.
    """
    import datetime as dt
    import os
    import time

    from kdoctor.assessment import RunNote, assess
    from kdoctor.checklist import plan
    from kdoctor.output import check_writable, parse_outputs, write_atomically
    from kdoctor.report import FORMATS, canvas_for, render

    started, started_at = time.monotonic(), dt.datetime.now(dt.timezone.utc)
    outputs = parse_outputs(output or (), FORMATS, stdout=format)
    if save_snapshot:
        check_writable(save_snapshot)
    catalog, chosen = _load(checklist, plugin)
    planned = plan(chosen, catalog, select=select or (), skip=skip or (), smoke=not no_smoke)
    rules = chosen.rules(today=started_at.date(), fail_on=fail_on, allow_unknown=allow_unknown)
    if snapshot:
        facts, interrupted, target = _recorded(snapshot, catalog), False, f"recorded in {snapshot}"
    else:
        examination, target = _examine(catalog, chosen, planned, python, replicas, timeout)
        facts, interrupted = examination.facts, examination.interrupted
    if save_snapshot:
        _save(save_snapshot, facts)
    note = RunNote(
        target=target, started_at=started_at, duration_s=time.monotonic() - started, interrupted=interrupted
    )
    report = assess(facts, chosen, planned, rules, note)
    for item in outputs.files:
        write_atomically(item.path, render(report, item.format))
    _print(render(report, outputs.stdout, canvas_for(sys.stdout, os.environ)))
    raise typer.Exit(report.verdict.exit_code)


@app.command(epilog="Example: kdoctor snapshot -o node7.json && kdoctor check --snapshot node7.json")
def snapshot(
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The file to write; stdout otherwise.", show_default=False)
    ] = None,
    checklist: ChecklistOption = DEFAULT_CHECKLIST,
    python: PythonOption = None,
    no_smoke: NoSmokeOption = False,
    replicas: ReplicasOption = None,
    timeout: TimeoutOption = DEFAULT_TIMEOUT_S,
    plugin: PluginOption = None,
) -> None:
    """Record the facts of this machine, with the trainings that the checklist asks for, as JSON.

    User names, home folders and secrets are left out. Judge it anywhere with kdoctor check --snapshot.
    """
    from kdoctor.checklist import plan
    from kdoctor.judge import EXIT_INTERRUPTED
    from kdoctor.output import check_writable

    if output:
        check_writable(output)
    catalog, chosen = _load(checklist, plugin)
    planned = plan(chosen, catalog, smoke=not no_smoke)
    examination, _ = _examine(catalog, chosen, planned, python, replicas, timeout)
    _save(output, examination.facts)
    if examination.interrupted:
        raise typer.Exit(EXIT_INTERRUPTED)


@app.command(name="list", epilog="Example: kdoctor list --scenarios")
def list_(
    *,
    scenarios: Annotated[bool, typer.Option("--scenarios", help="The smoke trainings.")] = False,
    checklists: Annotated[bool, typer.Option("--checklists", help="The shipped checklists.")] = False,
    plugin: PluginOption = None,
) -> None:
    """List the checks, or the scenarios, or the checklists."""
    from kdoctor.catalog import load_catalog
    from kdoctor.listing import list_checklists, list_checks, list_scenarios

    catalog = load_catalog(plugin or ())
    wanted = [list_scenarios] * scenarios + [list_checklists] * checklists or [list_checks]
    _print("\n".join(write(catalog) for write in wanted))


@app.command(epilog="Example: kdoctor explain gpu.replicas-match")
def explain(
    check_id: Annotated[str, typer.Argument(metavar="CHECK_ID", help="Id of a check or of a scenario.")],
    *,
    plugin: PluginOption = None,
) -> None:
    """Say what a check or scenario tests, why it matters, where the criterion is from, and what to do."""
    from kdoctor.catalog import load_catalog
    from kdoctor.listing import explain as words_about

    _print(words_about(load_catalog(plugin or ()), check_id))


@app.command(epilog="Example: kdoctor schema report > report.schema.json")
def schema(
    document: Annotated[Literal["report", "snapshot", "checklist"], typer.Argument(help="Which document.")],
    *,
    plugin: PluginOption = None,
) -> None:
    """Print the JSON Schema of a document that kdoctor reads or writes."""
    import json

    from kdoctor.catalog import load_catalog

    if document == "report":
        from kdoctor.report import report_schema

        text = report_schema()
    elif document == "checklist":
        from kdoctor.checklist import json_schema as checklist_schema

        text = checklist_schema()
    else:
        from kdoctor.snapshot import json_schema as snapshot_schema

        text = snapshot_schema(load_catalog(plugin or ()).fact_groups)
    _print(json.dumps(text, indent=2, ensure_ascii=False) + "\n")


@checklist_app.command(epilog="Example: kdoctor checklist show multi-gpu-keras > my-node.yaml")
def show(
    checklist: Annotated[str, typer.Argument(metavar="FILE", help="Name or path of a checklist.")] = DEFAULT_CHECKLIST,
    *,
    plugin: PluginOption = None,
) -> None:
    """Print a checklist as it is written, if it is valid: the start of your own."""
    from kdoctor.checklist import read_text

    catalog, _ = _load(checklist, plugin)
    _print(read_text(checklist, catalog))


@checklist_app.command(epilog="Example: kdoctor checklist validate ci/gpu-node.yaml")
def validate(
    checklist: Annotated[list[str], typer.Argument(metavar="FILE...", help="Names or paths of checklists.")],
    *,
    plugin: PluginOption = None,
) -> None:
    """Say every mistake in checklists with its line and column; nothing is run. Exit code 2 if there is one."""
    from kdoctor.catalog import load_catalog
    from kdoctor.checklist import ChecklistError, load_checklist
    from kdoctor.judge import EXIT_USAGE

    catalog = load_catalog(plugin or ())
    broken = False
    for name in checklist:
        try:
            read = load_checklist(name, catalog)
        except ChecklistError as error:
            _complain(str(error))
            broken = True
        else:
            typer.echo(
                f"{name}: valid ({read.name} version {read.version}: "
                f"{len(read.entries)} checks, {len(read.scenarios)} scenarios)"
            )
    raise typer.Exit(EXIT_USAGE if broken else 0)


def _load(checklist: str, plugins: list[str] | None) -> tuple[Catalog, Checklist]:
    from kdoctor.catalog import load_catalog
    from kdoctor.checklist import load_checklist

    catalog = load_catalog(plugins or ())
    return catalog, load_checklist(checklist, catalog)


def _examine(  # noqa: PLR0913 - what the options say
    catalog: Catalog,
    checklist: Checklist,
    planned: Sequence[PlannedCheck],
    python: str | None,
    replicas: int | None,
    timeout: float,
) -> tuple[Examination, str]:
    """Examine this machine; and the target in words, for when its facts cannot be had."""
    import os
    import signal

    from kdoctor.checklist import scenarios_to_run
    from kdoctor.collect.child import Children
    from kdoctor.collect.probe import Context
    from kdoctor.collect.target import choose_target
    from kdoctor.examination import Examination, Training
    from kdoctor.progress import progress

    # A batch system ends a job by SIGTERM: then, too, the children must end and what is known be printed.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    children = Children()
    target = choose_target(python, os.environ, children)
    context = Context(python=target.python, chosen_by=target.chosen_by, environ=dict(os.environ), children=children)
    trainings = [
        Training(
            scenario=entry.scenario,
            replicas=replicas or (None if entry.replicas == "gpus" else entry.replicas),
        )
        for entry in scenarios_to_run(checklist, planned)
    ]
    with progress() as shown:
        examination = Examination(catalog.probes, context, deadline_s=timeout, note=shown.note)
        examination.run(trainings)
    return examination, f"{target.python} (chosen by: {target.chosen_by})"


def _recorded(path: Path, catalog: Catalog) -> FactTable:
    """The facts of a recorded snapshot."""
    from kdoctor.snapshot import load

    recorded = load(path, catalog.fact_groups)
    for note in recorded.notes:
        _complain(f"kdoctor: {path}: {note}")
    return recorded.facts


def _save(path: Path | None, facts: FactTable) -> None:
    """Write a snapshot to a file, or to stdout."""
    from kdoctor.output import write_atomically
    from kdoctor.snapshot import Snapshot, dumps

    text = dumps(Snapshot.now(facts))
    if path:
        write_atomically(path, text)
    else:
        _print(text)


def _print(text: str) -> None:
    """Write to stdout what it asked for, and nothing else, whatever its encoding is."""
    sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    sys.stdout.write(text)
    sys.stdout.flush()
