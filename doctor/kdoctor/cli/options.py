"""Options that several commands have."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from kdoctor.cli.completion import beginning_with, complete_check, complete_checklist, complete_scenario
from kdoctor.cli.help import ADVANCED
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
    """An option whose default is not shown in ``--help``, unless that is asked for."""
    return typer.Option(*names, help=help, rich_help_panel=panel, **{"show_default": False, **settings})


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


_examine, _expect, _output, _advanced = (partial(option, panel=panel) for panel in (EXAMINE, EXPECT, OUTPUT, ADVANCED))
_checks = partial(_examine, metavar="CHECK", autocompletion=complete_check)
_limit = partial(_advanced, min=1, callback=check_time_limit)

PythonOption = Annotated[
    str | None,
    _examine(
        "Target interpreter: a path, the folder of an environment, or a name on PATH. "
        "\\[default: the active environment, the project's, or kdoctor's]",
        "--python",
        metavar="PATH",
    ),
]
ChecklistOption = Annotated[
    str,
    _expect(
        "Name of a shipped checklist, or path of yours.",
        "--checklist",
        "-c",
        show_default=True,
        metavar="NAME|FILE",
        autocompletion=complete_checklist,
    ),
]
ChecklistArgument = Annotated[
    str, typer.Argument(metavar="FILE", help="Name or path of a checklist.", autocompletion=complete_checklist)
]
PluginOption = Annotated[
    list[str] | None,
    _advanced(
        "Load more checks, probes or scenarios: my_checks:checks or FILE.py:checks (repeatable).",
        "--plugin",
        metavar="MODULE:ATTRIBUTE",
    ),
]
ReplicasOption = Annotated[
    int | None,
    _advanced(
        "Train on this number of logical CPU devices instead of what the checklist says.", "--replicas", min=1, max=64
    ),
]
GpusOption = Annotated[
    int | None,
    _expect(
        "Expect exactly N usable GPUs instead of what the checklist says; 0 expects none. "
        "CUDA_VISIBLE_DEVICES selects them.",
        "--gpus",
        metavar="N",
        min=0,
    ),
]
SnapshotOption = Annotated[
    Path | None,
    _examine(
        "Judge this snapshot, or output of other tools such as nvidia-smi -q, instead of this machine.",
        "--snapshot",
        metavar="FILE",
    ),
]
MatrixOption = Annotated[
    str | None,
    _advanced(
        "Custom version matrix that extends or replaces the shipped one. \\[env: KDOCTOR_MATRIX]",
        "--matrix",
        metavar="FILE",
    ),
]
TimeoutOption = Annotated[float, _limit("Time limit of the whole run, in seconds.", "--timeout", show_default=True)]
NoSmokeOption = Annotated[bool, _examine("Skip the smoke trainings.", "--no-smoke")]
LockOption = Annotated[
    Path | None, _advanced("Lock to use. \\[default: NAME.lock.yaml in the folder of the checklist]", "--lock")
]
FailOnOption = Annotated[
    Literal["error", "warning", "info"], _advanced("Minimum severity that fails the run.", show_default=True)
]
AllowUnknownOption = Annotated[bool, _expect("Pass even if required checks could not be evaluated.", "--allow-unknown")]
NoHistoryOption = Annotated[bool, _advanced("Do not record this run in the history.", "--no-history")]
OutputOption = Annotated[
    list[str] | None, _output("Also write a report to FILE (repeatable).", "--output", "-o", metavar="FORMAT=FILE")
]
VerboseOption = Annotated[
    int, _output("Show every check; twice also reasons and sources.", "--verbose", "-v", count=True)
]
CaseTimeoutOption = Annotated[
    float | None, _limit("Time limit for each case, in seconds. \\[default: that of its scenario]", "--case-timeout")
]
SelectOption = Annotated[
    list[str] | None, _checks("Run only these checks: ids, families or globs (repeatable).", "--select")
]
SkipOption = Annotated[list[str] | None, _checks("Skip these checks: ids, families or globs (repeatable).", "--skip")]
SaveSnapshotOption = Annotated[Path | None, _advanced("Save the facts of this run as a snapshot.", "--save-snapshot")]
NoLockOption = Annotated[bool, _advanced("Do not compare with the last passing run.", "--no-lock")]
QuietOption = Annotated[bool, _output("Print one line (format 'line') and no progress.", "--quiet", "-q")]
LogFormatOption = Annotated[
    Literal["text", "json"],
    _advanced("Format of stderr: text, or one JSON object per line.", "--log-format", show_default=True),
]
ScenariosArgument = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="SCENARIO", help="Scenarios to run, by id.", show_default=False, autocompletion=complete_scenario
    ),
]
TierOption = Annotated[
    Literal["quick", "standard", "full"] | None,
    _examine("Thoroughness. Without --tier, --strategy and scenarios it is 'quick'.", "--tier"),
]
StrategyOption = Annotated[
    Strategy | None, _examine("Run only scenarios of this strategy, such as mirrored.", "--strategy", metavar="NAME")
]
SmokeGpusOption = Annotated[
    int | None,
    _expect("Expect exactly N usable GPUs. CUDA_VISIBLE_DEVICES selects them.", "--gpus", metavar="N", min=1),
]
SmokeReplicasOption = Annotated[
    int | None,
    _examine("Train on this number of logical CPU devices instead of every visible GPU.", "--replicas", min=1, max=64),
]
KeepArtifactsOption = Annotated[
    Path | None, _output("Keep the events, stderr and stacks of each case in DIR.", "--keep-artifacts", metavar="DIR")
]
ScriptOption = Annotated[
    Path | None,
    _advanced(
        "The job's script. Files next to it can hide packages. With --model: those of the working folder.",
        exists=True,
        dir_okay=False,
        metavar="FILE",
    ),
]
FixScriptOption = Annotated[
    Path | None,
    _output("Also write the fixes as a bash script, which asks for confirmation before each step.", metavar="FILE"),
]
