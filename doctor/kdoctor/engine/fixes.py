"""Orders the fixes of a run into one plan. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence

from kdoctor.engine.report import Cause, Drift, FixStep
from kdoctor.model import Severity
from kdoctor.text.lists import counted, ranges
from kdoctor.text.subjects import gpu_index


def plan_fixes(  # noqa: PLR0913 - what a run knows
    causes: Sequence[Cause],
    command: str,
    *,
    visible: Sequence[int] = (),
    drift: Drift | None = None,
    rollback: str = "",
    recorded: bool = False,
) -> tuple[FixStep, ...]:
    """What to do, in order: what lets the job start now, a rollback to the last passing run, then the fixes.

    Args:
        causes: those that the report shows, in the order in which to solve them.
        command: the command that runs the same checks again.
        visible: indices of the GPUs that the job would use, in its order.
        drift: what changed since the last passing run.
        rollback: the command that restores the last passing run; empty if there is nothing to restore.
        recorded: whether the facts are a recording, which no fix changes.
    """
    steps = [*_without_gpus(causes, command, visible, recorded=recorded)]
    if drift and rollback:
        steps += _go_back(causes, drift, rollback, command)
    return (*steps, *_fixes(causes, command))


def _without_gpus(
    causes: Iterable[Cause], command: str, visible: Sequence[int], *, recorded: bool
) -> Iterator[FixStep]:
    """Leave out the GPUs that have an error, if others remain."""
    avoidable = [cause for cause in causes if cause.severity is Severity.ERROR and _gpus(cause)]
    broken = {index for cause in avoidable for index in _gpus(cause)}
    healthy = [index for index in visible if index not in broken]
    if not healthy or len(healthy) == len(visible):
        return
    rest = f"the other {len(healthy)}" if len(healthy) > 1 else f"GPU {healthy[0]} alone"
    again = f"{re.sub(r' --gpus[ =][0-9]+', '', command)} --gpus {len(healthy)}"
    yield FixStep(
        kind="workaround",
        summary=f"Train without GPU {ranges(broken)}, on {rest}.",
        commands=(
            "export CUDA_DEVICE_ORDER=PCI_BUS_ID",
            f"export CUDA_VISIBLE_DEVICES={','.join(map(str, healthy))}",
            *([] if recorded else [again]),
        ),
        solves=tuple(check for cause in avoidable for check in cause.checks),
        check=again,
    )


def _gpus(cause: Cause) -> frozenset[int]:
    """The GPUs that the cause is about; none if a part of it is about anything else."""
    indices = [gpu_index(subject) for problem in cause.problems for subject in problem.subjects]
    known = frozenset(index for index in indices if index is not None)
    return known if None not in indices else frozenset()


def _go_back(causes: Iterable[Cause], drift: Drift, rollback: str, command: str) -> Iterator[FixStep]:
    """Return to the last passing run, if what changed since then may explain a cause."""
    explaining = [change for change in drift.changes if change.explains]
    explained = {check for change in explaining for check in change.explains}
    solved = [check for cause in causes for check in cause.checks if explained & {*cause.checks, *cause.explains}]
    if solved:
        changed = "; ".join(
            f"{change.fact} {change.old or 'absent'} -> {change.new or 'absent'}" for change in explaining[:2]
        )
        rest = len(drift.changes) - len(explaining[:2])
        more = f", and {counted(rest, 'more change')}" if rest else ""
        yield FixStep(
            kind="rollback",
            summary=f"{changed}{more} since the last passing run",
            commands=(rollback,),
            solves=tuple(solved),
            check=command,
        )


def _fixes(causes: Iterable[Cause], command: str) -> Iterator[FixStep]:
    """The fix of each cause. A command that several causes need is in the first step only."""
    seen: set[str] = set()
    for cause in causes:
        commands = tuple(item for item in cause.commands if item not in seen)
        look = tuple(item for item in cause.look if item not in seen and item not in commands)
        seen.update(commands, look)
        yield FixStep(kind="fix", summary=cause.fix, commands=commands, look=look, solves=cause.checks, check=command)
