"""The yardstick for ``kdoctor --help``: a typer program with two empty commands."""

import typer

app = typer.Typer()


@app.command()
def first() -> None:
    """Do nothing."""


@app.command()
def second() -> None:
    """Do nothing else."""


if __name__ == "__main__":
    app()
