"""The command ``kdoctor scratch``."""

from pathlib import Path

import typer

from kdoctor.cli.lazy import LazyCommand


def scratch(largest: int = typer.Option(3, help="How many files to show.", min=1)) -> None:
    """List the largest files of the scratch directory."""
    files = [path for path in Path("/scratch").rglob("*") if path.is_file()]
    files.sort(key=lambda path: path.stat().st_size, reverse=True)
    for path in files[:largest]:
        typer.echo(f"{path.stat().st_size / 2**30:8.1f} GiB  {path}")


SCRATCH = LazyCommand(
    "site_checks.command:scratch",
    "List the largest files of the scratch directory.",
    epilog="Example: kdoctor scratch --largest 10",
)
