"""The command line: one module for each command. It connects the parts of kdoctor and decides nothing."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated, Any, ClassVar

import typer

from kdoctor.cli.help import ask_for_all
from kdoctor.cli.lazy import LazyCommand, LazyGroup
from kdoctor.cli.refused import refused_by_typer
from kdoctor.cli.stderr import (
    CommandInterrupted,
    flushed_stdout,
    open_closed_streams,
    refuse_silent_exits,
    report_errors,
)
from kdoctor.commands.again import has_driver
from kdoctor.version import __version__


@contextmanager
def _reported() -> Iterator[None]:
    """Report Ctrl-C, which typer turns into an exit code without a word, and what typer refuses."""
    try:
        with refused_by_typer():
            yield
    except KeyboardInterrupt as error:
        raise CommandInterrupted from error


class _Commands(LazyGroup):
    extensible = True
    lazy_commands: ClassVar[Mapping[str, LazyCommand]] = {
        "check": LazyCommand(
            "kdoctor.cli.check:check",
            "Check whether a job can start here, and what to fix first.",
            "Example: kdoctor check --no-smoke && python train.py",
            kind="kdoctor.cli.added:ExtensibleCommand",
            place="front",
        ),
        "smoke": LazyCommand(
            "kdoctor.cli.smoke:smoke",
            "Run only the smoke trainings.",
            "Example: kdoctor smoke --tier standard --replicas 2",
        ),
        "snapshot": LazyCommand(
            "kdoctor.cli.snapshot:snapshot",
            "Record this machine's facts, or import output of other tools.",
            "Example: kdoctor snapshot -o node7.json && kdoctor check --snapshot node7.json",
            kind="kdoctor.cli.added:ExtensibleCommand",
        ),
        "matrix": LazyCommand("kdoctor.cli.matrix:app", "Show which releases fit a driver, GPUs and Python."),
        "topology": LazyCommand(
            "kdoctor.cli.topology:topology",
            "Show how GPUs are connected, and which to use for N replicas.",
            "Example: kdoctor topology --replicas 4",
        ),
        "list": LazyCommand(
            "kdoctor.cli.list:list_",
            "List the checks, scenarios or checklists.",
            "Example: kdoctor list --format json | jq -r '.checks[].id'",
        ),
        "explain": LazyCommand(
            "kdoctor.cli.explain:explain",
            "Explain a check, lint rule, known failure or error message.",
            'Example: kdoctor explain "Could not find cuda drivers"',
            place="front",
        ),
        "checklist": LazyCommand(
            "kdoctor.cli:checklist_app", "Write, validate, record and compare checklists.", place="front"
        ),
        "rollback": LazyCommand(
            "kdoctor.cli.rollback:rollback",
            "Print the commands that restore the last recorded state.",
            "Example: kdoctor rollback --fix-script rollback.sh && bash rollback.sh",
            kind="kdoctor.cli.arguments:OptionsOnly",
            place="front",
        ),
        "history": LazyCommand("kdoctor.cli.history:app", "Show the runs on this machine, and what changed."),
        "schema": LazyCommand(
            "kdoctor.cli.schema:schema",
            "Print the JSON Schema of a document that kdoctor reads or writes.",
            "Example: kdoctor schema report > report.schema.json",
            place="hidden",
        ),
    }

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """Parse the arguments, which imports most of typer."""
        with _reported():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """Run the command that the arguments name."""
        with _reported():
            return super().invoke(ctx)


class _ChecklistCommands(LazyGroup):
    lazy_commands: ClassVar[Mapping[str, LazyCommand]] = {
        "show": LazyCommand(
            "kdoctor.cli.checklist:show_",
            "Print a checklist, as a starting point for yours.",
            "Example: kdoctor checklist show multi-gpu-keras > my-node.yaml",
        ),
        "validate": LazyCommand(
            "kdoctor.cli.checklist:validate",
            "Validate checklists and locks, and report errors with line and column. Exits with 2 if any are found.",
            "Example: kdoctor checklist validate ci/gpu-node.yaml",
        ),
        "init": LazyCommand(
            "kdoctor.cli.checklist:init",
            "Generate a commented checklist from this machine's current state, without running any training.",
            "Example: kdoctor checklist init ci/gpu-node.yaml --owner ml-platform",
        ),
        "record": LazyCommand(
            "kdoctor.cli.record:record",
            "Run the checks and, if they pass, record the facts in the lock of the checklist.",
            "Example: kdoctor checklist record ci/gpu-node.yaml && git add ci/gpu-node.lock.yaml",
        ),
        "diff": LazyCommand(
            "kdoctor.cli.diff:diff",
            "Compare checklists and their locks: what is loosened, tightened, moved or cosmetic.",
            "Example: kdoctor checklist diff ci/gpu-node.yaml --base main --fail-on loosened",
        ),
        "git-diff": LazyCommand(
            "kdoctor.cli.diff:git_diff",
            "External diff driver for git (see docs/checklist.md).",
            "Set up: git config diff.kdoctor.command 'kdoctor checklist git-diff'",
            place="hidden",
        ),
    }


app = typer.Typer(
    name="kdoctor",
    cls=_Commands,
    help="Check whether a multi-GPU Keras job can start on this machine.",
    epilog=f"Start with: kdoctor check{'' if has_driver else ' --checklist cpu-smoke'}",
    invoke_without_command=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


checklist_app = typer.Typer(
    cls=_ChecklistCommands,
    epilog="Example: kdoctor checklist validate ci/gpu-node.yaml",
    invoke_without_command=True,
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@checklist_app.callback()
def _checklist(ctx: typer.Context) -> None:
    """Write, validate, record and compare checklists."""
    _help_without_command(ctx)


def main() -> None:
    """Run the command line. Every error is one screen and an exit code."""
    open_closed_streams()
    refuse_silent_exits()
    sys.argv[1:] = ask_for_all(sys.argv[1:])
    with report_errors(), flushed_stdout():
        app()


def _version(value: bool) -> None:  # noqa: FBT001 - typer's callback
    if value:
        typer.echo(f"kdoctor {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    ctx: typer.Context,
    *,
    version: Annotated[  # noqa: ARG001 - its callback prints it
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    _help_without_command(ctx)


def _help_without_command(ctx: typer.Context) -> None:
    """``kdoctor`` is the same as ``kdoctor --help``."""
    if ctx.invoked_subcommand is None:
        typer.echo(ctx.get_help().rstrip(), color=ctx.color)
        raise typer.Exit
