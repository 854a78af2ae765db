"""What a way back consists of."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RollbackStep:
    """One step of the way back, and how to see that it worked."""

    title: str
    """One sentence."""
    restores: tuple[str, ...]
    """``packages.keras: 3.6.0 -> 3.15.1``, each fact that it brings back."""
    commands: tuple[str, ...]
    """Shell commands, in order."""
    verify: tuple[str, ...]
    """Shell commands that exit with 0 where the step worked."""
    needs_root: bool = False
    needs_reboot: bool = False
    in_shell: bool = False
    """Whether the commands change the shell that runs them, and so do nothing for another."""
    elsewhere: str | None = None
    """Where the commands are to be run, if not on the examined machine; the verification is run here, afterwards."""


@dataclass(frozen=True, kw_only=True)
class RollbackPlan:
    """The way back to a lock: only what drifted, in a safe order."""

    lock: str
    """The lock's file."""
    recorded: str
    """When it was recorded."""
    steps: tuple[RollbackStep, ...] = ()
    by_hand: tuple[str, ...] = ()
    """What drifted and cannot be undone by a command, each with the reason."""
    unread: tuple[str, ...] = ()
    """Sections that could not be compared, each with the reason: there may be more to do."""
    again: str = "kdoctor check"
    """The command that examines the same environment by the same checklist once more."""
    caution: str | None = None
    """Why this may be the wrong environment, if it looks so."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing that was compared has drifted."""
        return not self.steps and not self.by_hand
