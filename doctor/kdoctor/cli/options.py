"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

DEFAULT_CHECKLIST = "multi-gpu-keras"
DEFAULT_TIMEOUT_S = 1800.0

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
    typer.Option(
        "--plugin", help="module:attribute of further checks, probes or scenarios (repeatable).", show_default=False
    ),
]
ReplicasOption = Annotated[
    int | None,
    typer.Option(
        "--replicas",
        min=1,
        max=64,
        help="Train on this many logical CPU devices, whatever the checklist says.",
        show_default=False,
    ),
]
MatrixOption = Annotated[
    str | None,
    typer.Option(
        "--matrix",
        metavar="FILE",
        help="A version matrix of your own: it extends the shipped one, or stands for it. Otherwise KDOCTOR_MATRIX.",
        show_default=False,
    ),
]
TimeoutOption = Annotated[float, typer.Option("--timeout", min=1, help="Seconds for the whole run.")]
NoSmokeOption = Annotated[bool, typer.Option("--no-smoke", help="Leave the trainings out.")]
LockOption = Annotated[
    Path | None,
    typer.Option(
        "--lock", help="The lock's file; NAME.lock.yaml beside the checklist, unless given.", show_default=False
    ),
]
FailOnOption = Annotated[
    Literal["error", "warning", "info"], typer.Option(help="The least severity that fails the run.")
]
AllowUnknownOption = Annotated[bool, typer.Option("--allow-unknown", help="Accept what could not be judged.")]
NoHistoryOption = Annotated[bool, typer.Option("--no-history", help="Do not keep this run in the history.")]
ReportFormatOption = Annotated[
    str | None,
    typer.Option(
        "--format",
        "-f",
        metavar="terminal|json|junit|markdown|html|line|nagios|prometheus|github",
        help="What stdout carries: terminal, unless given.",
        show_default=False,
    ),
]
OutputOption = Annotated[
    list[str] | None,
    typer.Option(
        "--output", "-o", metavar="FORMAT=FILE", help="Write a report there, too (repeatable).", show_default=False
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model",
        metavar="MODULE:FUNCTION",
        help="Examine your own model, too: a function in the target environment that returns it. Needs --data.",
        show_default=False,
    ),
]
DataOption = Annotated[
    str | None,
    typer.Option(
        "--data",
        metavar="MODULE:FUNCTION",
        help="Your own data: a function that returns a dataset, a PyDataset, arrays or a generator.",
        show_default=False,
    ),
]
StepsOption = Annotated[
    int | None,
    typer.Option(
        "--steps", min=0, max=10_000, help="Steps that your own model is trained: 8, unless given.", show_default=False
    ),
]
StepsPerEpochOption = Annotated[
    int | None,
    typer.Option("--steps-per-epoch", min=1, help="What your fit is told, for data without end.", show_default=False),
]
ModelTimeoutOption = Annotated[
    float | None,
    typer.Option(
        "--model-timeout", min=1, help="Seconds for your own model and data: 600, unless given.", show_default=False
    ),
]
