"""The command line: it wires the parts together and decides nothing.

One command a file. Everything but typer is imported inside the commands, so that ``--help`` answers at once.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence
from typing import Annotated

import typer
from typer.models import CommandInfo

import kdoctor
from kdoctor.cli import catalogue, checklist, history
from kdoctor.cli.check import check
from kdoctor.cli.lint import lint
from kdoctor.cli.matrix import matrix
from kdoctor.cli.plain import ByChecklist, PlainCommand, PlainGroup
from kdoctor.cli.rollback import rollback
from kdoctor.cli.schema import schema
from kdoctor.cli.smoke import smoke
from kdoctor.cli.snapshot import snapshot
from kdoctor.cli.stderr import errors_in_words
from kdoctor.cli.topology import topology

app = typer.Typer(
    name="kdoctor",
    cls=PlainGroup,
    help="Examines a machine and a Python environment before a multi-GPU Keras job: may it start here?",
    epilog="Start with: kdoctor check --checklist cpu-smoke",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command(epilog="Example: kdoctor check --no-smoke && python train.py", cls=ByChecklist)(check)
app.command(epilog="Example: kdoctor smoke --tier standard --replicas 2")(smoke)
app.command(epilog="Example: kdoctor snapshot -o node7.json && kdoctor check --snapshot node7.json")(snapshot)
app.command(epilog="Example: kdoctor lint --format github train.py notebooks/")(lint)
app.command(epilog='Example: kdoctor matrix --driver 535.161.08 --gpu "A100" --python 3.11', cls=PlainCommand)(matrix)
app.command(epilog="Example: kdoctor topology --replicas 4")(topology)
app.command(name="list", epilog="Example: kdoctor list --scenarios")(catalogue.list_)
app.command(epilog="Example: kdoctor explain gpu.replicas-match")(catalogue.explain)
app.add_typer(checklist.app, name="checklist")
app.command(epilog="Example: kdoctor rollback --script > back.sh && bash back.sh", cls=ByChecklist)(rollback)
app.add_typer(history.app, name="history")
app.command(epilog="Example: kdoctor schema report > report.schema.json")(schema)


def main() -> None:
    """Run the command line, and turn every error into one screen and an exit code."""
    # Imports make many objects and leave no garbage: looking for it so often takes a tenth of a start.
    gc.set_threshold(50_000)
    with errors_in_words():
        _build_only(app, sys.argv[1:])
        app()


def _build_only(built: typer.Typer, words: Sequence[str]) -> None:
    """Leave the other commands out: typer makes the options of all before it runs one, which takes long.

    Args:
        built: the commands.
        words: what was asked for. If the first is no command all stay, to be listed or suggested.
    """
    wanted = words[0] if words else None
    commands = [info for info in built.registered_commands if wanted in (info.name, _own_name(info))]
    groups = [info for info in built.registered_groups if info.name == wanted]
    if commands or groups:
        built.registered_commands, built.registered_groups = commands, groups
    for info in groups:
        if info.typer_instance:
            _build_only(info.typer_instance, words[1:])


def _own_name(info: CommandInfo) -> str | None:
    return None if info.name or info.callback is None else info.callback.__name__


def _version(value: bool) -> None:  # noqa: FBT001 - typer's callback
    if value:
        typer.echo(f"kdoctor {kdoctor.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    *,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
