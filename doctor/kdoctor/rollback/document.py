"""The rollback plan: the document that ``kdoctor rollback`` prints."""

from collections.abc import Iterable, Sequence
from typing import Annotated, Literal

from pydantic import Field

from kdoctor.documents import Document, Part
from kdoctor.engine.report import DriftChange
from kdoctor.text.sanitize import clean_line


class RollbackStep(Part):
    """One step of a rollback."""

    title: str
    restores: Annotated[tuple[str, ...], Field(description="Each fact that it restores, with both values.")]
    commands: Annotated[tuple[str, ...], Field(description="Shell commands, in order.")]
    verify: Annotated[tuple[str, ...], Field(description="Shell commands that exit with 0 if the step worked.")]
    needs_root: bool
    needs_reboot: bool
    in_shell: Annotated[bool, Field(description="Whether the commands change the shell that runs them.")]
    elsewhere: Annotated[str | None, Field(description="Where to run the commands, if not on this machine.")]


class RollbackPlan(Document):
    """The steps that restore the state recorded in a lock. Only what drifted is restored."""

    schema_: Annotated[Literal["kdoctor/rollback/v1"], Field(alias="schema")]
    lock: str
    recorded: Annotated[str, Field(description="UTC, ISO 8601.")]
    caution: Annotated[str | None, Field(description="Why the lock may be of another environment.")]
    steps: Annotated[tuple[RollbackStep, ...], Field(description="In a safe order.")]
    by_hand: Annotated[tuple[str, ...], Field(description="What no command restores, each with the reason.")]
    unread: Annotated[tuple[str, ...], Field(description="What could not be compared, each with the reason.")]
    again: Annotated[str, Field(description="The command that checks the same environment again.")]

    @property
    def is_empty(self) -> bool:
        """Whether nothing that was compared has drifted."""
        return not self.steps and not self.by_hand


def step(  # noqa: PLR0913 - all that a step consists of
    title: str,
    changes: Iterable[DriftChange],
    commands: Sequence[str],
    verify: Sequence[str],
    *,
    needs_root: bool = False,
    needs_reboot: bool = False,
    in_shell: bool = False,
    elsewhere: str | None = None,
) -> RollbackStep:
    """The step that undoes these changes. The verification always runs on this machine."""
    return RollbackStep(
        title=title,
        restores=restores(changes),
        commands=tuple(commands),
        verify=tuple(verify),
        needs_root=needs_root,
        needs_reboot=needs_reboot,
        in_shell=in_shell,
        elsewhere=elsewhere,
    )


def restores(changes: Iterable[DriftChange]) -> tuple[str, ...]:
    """``packages.keras: 3.6.0 -> 3.15.1`` for each change: the current value and the recorded one."""
    return tuple(
        clean_line(f"{change.fact}: {change.new or 'nothing'} -> {change.old or 'nothing'}") for change in changes
    )
