"""Options that several commands have."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from kdoctor.cli.completion import beginning_with, complete_check, complete_checklist, complete_scenario
from kdoctor.cli.lazy import ADVANCED
from kdoctor.smoke.scenario import Strategy

EXAMINE, EXPECT, OUTPUT = "What to examine", "What to expect", "Output"
"""Panels of ``--help``."""

DEFAULT_CHECKLIST = "multi-gpu-keras"
DEFAULT_TIMEOUT_S = 1800.0
_LONGEST_S = 31_536_000.0
"""A year. The system's timers take no limit that is much longer, or infinite."""


def check_time_limit(seconds: float | None) -> float | None:
    """Refuse a time limit that no timer takes. As ``max`` of the option it would fill the help.

    Raises:
        BadParameter: it is longer than a year, infinite, or not a number.
    """
    if seconds is not None and not seconds <= _LONGEST_S:
        raise typer.BadParameter(f"{seconds:g} is longer than a year ({_LONGEST_S:.0f} s).")
    return seconds


def option(help: str, *names: str, panel: str | None = None, **settings: Any) -> Any:  # noqa: A002 - as typer calls it
    """An option whose default is not shown in ``--help``."""
    return typer.Option(*names, help=help, show_default=False, rich_help_panel=panel, **settings)


def format_option(formats: Iterable[str], panel: str | None = None) -> Any:
    """The option ``--format`` of a command whose default depends on its other options.

    Args:
        formats: the formats of the command, in the order of ``--help``.
        panel: of ``--help``; None is that of all options.
    """
    names = tuple(formats)
    return option(
        f"Output format: {', '.join(names)}. \\[default: terminal]",
        "--format",
        "-f",
        panel=panel,
        metavar="FORMAT",
        autocompletion=lambda incomplete: beginning_with(incomplete, names),
    )


PythonOption = Annotated[
    str | None,
    option(
        "Target interpreter: a path, the folder of an environment, or a name on PATH. "
        "\\[default: the active environment, the project's, or kdoctor's]",
        "--python",
        panel=EXAMINE,
        metavar="PATH",
    ),
]
ChecklistOption = Annotated[
    str,
    typer.Option(
        "--checklist",
        "-c",
        help="Name of a shipped checklist, or path of yours.",
        rich_help_panel=EXPECT,
        metavar="NAME|FILE",
        autocompletion=complete_checklist,
    ),
]
ChecklistArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="Name or path of a checklist.", autocompletion=complete_checklist)
]
PluginOption = Annotated[
    list[str] | None,
    option(
        "Load more checks, probes or scenarios: my_checks:checks or FILE.py:checks (repeatable).",
        "--plugin",
        panel=ADVANCED,
        metavar="MODULE:ATTRIBUTE",
    ),
]
ReplicasOption = Annotated[
    int | None,
    option(
        "Train on this number of logical CPU devices instead of what the checklist says.",
        "--replicas",
        panel=ADVANCED,
        min=1,
        max=64,
    ),
]
GpusOption = Annotated[
    int | None,
    option(
        "Expect exactly N usable GPUs instead of what the checklist says; 0 expects none. "
        "CUDA_VISIBLE_DEVICES selects them.",
        "--gpus",
        panel=EXPECT,
        metavar="N",
        min=0,
    ),
]
SnapshotOption = Annotated[
    Path | None,
    option(
        "Judge this snapshot, or output of other tools such as nvidia-smi -q, instead of this machine.",
        "--snapshot",
        panel=EXAMINE,
        metavar="FILE",
    ),
]
MatrixOption = Annotated[
    str | None,
    option(
        "Custom version matrix that extends or replaces the shipped one. \\[env: KDOCTOR_MATRIX]",
        "--matrix",
        panel=ADVANCED,
        metavar="FILE",
    ),
]
TimeoutOption = Annotated[
    float,
    typer.Option(
        "--timeout",
        min=1,
        callback=check_time_limit,
        help="Time limit of the whole run, in seconds.",
        rich_help_panel=ADVANCED,
    ),
]
NoSmokeOption = Annotated[bool, typer.Option("--no-smoke", help="Skip the smoke trainings.", rich_help_panel=EXAMINE)]
LockOption = Annotated[
    Path | None,
    option("Lock to use. \\[default: NAME.lock.yaml in the folder of the checklist]", "--lock", panel=ADVANCED),
]
FailOnOption = Annotated[
    Literal["error", "warning", "info"],
    typer.Option(help="Minimum severity that fails the run.", rich_help_panel=ADVANCED),
]
AllowUnknownOption = Annotated[
    bool,
    typer.Option(
        "--allow-unknown", help="Pass even if required checks could not be evaluated.", rich_help_panel=EXPECT
    ),
]
NoHistoryOption = Annotated[
    bool, typer.Option("--no-history", help="Do not record this run in the history.", rich_help_panel=ADVANCED)
]
OutputOption = Annotated[
    list[str] | None,
    option("Also write a report to FILE (repeatable).", "--output", "-o", panel=OUTPUT, metavar="FORMAT=FILE"),
]
VerboseOption = Annotated[
    int,
    typer.Option(
        "--verbose",
        "-v",
        count=True,
        show_default=False,
        help="Show every check; twice also reasons and sources.",
        rich_help_panel=OUTPUT,
    ),
]
CaseTimeoutOption = Annotated[
    float | None,
    option(
        "Time limit for each case, in seconds. \\[default: that of its scenario]",
        "--case-timeout",
        panel=ADVANCED,
        min=1,
        callback=check_time_limit,
    ),
]
SelectOption = Annotated[
    list[str] | None,
    option(
        "Run only these checks: ids, families or globs (repeatable).",
        "--select",
        panel=EXAMINE,
        metavar="CHECK",
        autocompletion=complete_check,
    ),
]
SkipOption = Annotated[
    list[str] | None,
    option(
        "Skip these checks: ids, families or globs (repeatable).",
        "--skip",
        panel=EXAMINE,
        metavar="CHECK",
        autocompletion=complete_check,
    ),
]
SaveSnapshotOption = Annotated[
    Path | None, option("Save the facts of this run as a snapshot.", "--save-snapshot", panel=ADVANCED)
]
NoLockOption = Annotated[
    bool, typer.Option("--no-lock", help="Do not compare with the last passing run.", rich_help_panel=ADVANCED)
]
QuietOption = Annotated[
    bool, typer.Option("--quiet", "-q", help="Print one line (format 'line') and no progress.", rich_help_panel=OUTPUT)
]
LogFormatOption = Annotated[
    Literal["text", "json"],
    typer.Option("--log-format", help="Format of stderr: text, or one JSON object per line.", rich_help_panel=ADVANCED),
]
ScenariosArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SCENARIO", help="Scenarios to run, by id.", show_default=False, autocompletion=complete_scenario
    ),
]
TierOption = Annotated[
    Literal["quick", "standard", "full"] | None,
    option("Thoroughness. Without --tier, --strategy and scenarios it is 'quick'.", "--tier", panel=EXAMINE),
]
StrategyOption = Annotated[
    Strategy | None,
    option("Run only scenarios of this strategy, such as mirrored.", "--strategy", panel=EXAMINE, metavar="NAME"),
]
SmokeGpusOption = Annotated[
    int | None,
    option(
        "Expect exactly N usable GPUs. CUDA_VISIBLE_DEVICES selects them.", "--gpus", panel=EXPECT, metavar="N", min=1
    ),
]
SmokeReplicasOption = Annotated[
    int | None,
    option(
        "Train on this number of logical CPU devices instead of every visible GPU.",
        "--replicas",
        panel=EXAMINE,
        min=1,
        max=64,
    ),
]
KeepArtifactsOption = Annotated[
    Path | None,
    option("Keep the events, stderr and stacks of each case in DIR.", "--keep-artifacts", panel=OUTPUT, metavar="DIR"),
]
ScriptOption = Annotated[
    Path | None,
    option(
        "The job's script. Files next to it can hide packages. With --model: those of the working folder.",
        panel=ADVANCED,
        exists=True,
        dir_okay=False,
        metavar="FILE",
    ),
]
FixScriptOption = Annotated[
    Path | None,
    option(
        "Also write the fixes as a bash script, which asks for confirmation before each step.",
        panel=OUTPUT,
        metavar="FILE",
    ),
]
