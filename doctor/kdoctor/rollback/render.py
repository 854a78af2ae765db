"""A rollback plan as text, and as a shell script that asks for confirmation before each step."""

from __future__ import annotations

from collections.abc import Iterator

from kdoctor.commands.shell import quoted
from kdoctor.report.phrases import instant
from kdoctor.rollback.document import RollbackPlan, RollbackStep


def as_text(plan: RollbackPlan) -> str:
    """The plan for people. Every command can be pasted."""
    return "".join(f"{line}\n" for line in _text(plan))


def _text(plan: RollbackPlan) -> Iterator[str]:
    yield f"Rollback to {plan.lock}, recorded {instant(plan.recorded)}"
    if plan.caution:
        yield f"Warning: {plan.caution}."
    if plan.is_empty:
        yield "Nothing that could be compared has drifted." if plan.unread else "Nothing has drifted."
    for number, step in enumerate(plan.steps, 1):
        yield from ("", _title(number, step))
        yield from (f"     {line}" for line in step.restores)
        yield ""
        yield from (f"   {line}" for command in step.commands for line in command.split("\n"))
        yield "   # verify:"
        yield from (f"   {line}" for command in step.verify for line in command.split("\n"))
    if plan.by_hand:
        yield from ("", "Not restored by these commands:")
        yield from (f"  - {text}" for text in plan.by_hand)
    if plan.unread:
        yield from ("", "Not compared, and possibly changed too:")
        yield from (f"  - {text}" for text in plan.unread)
    if plan.steps:
        yield from ("", "kdoctor has not changed anything. After the rollback, check again:", f"   {plan.again}")


def _title(number: int, step: RollbackStep) -> str:
    marks = [mark for mark, holds in (("needs root", step.needs_root), ("needs a reboot", step.needs_reboot)) if holds]
    marks += [step.elsewhere] if step.elsewhere else []
    return f"{number}. {step.title}" + (f" ({', '.join(marks)})" if marks else "")


def as_json(plan: RollbackPlan) -> str:
    """The plan for programs."""
    return plan.to_json()


_SCRIPT_HEAD = """\
#!/usr/bin/env bash
# Rollback to {lock}, recorded {recorded}.
# Written by `kdoctor rollback --script`. It asks before each step. --yes confirms all steps that do not need root.
set -euo pipefail

assume_yes=no
if [ "${{1:-}}" = --yes ]; then assume_yes=yes; fi

ask() {{  # ask QUESTION ROOT: whether to run the step
  if [ "$assume_yes" = yes ] && [ "$2" = no ]; then return 0; fi
  local answer=no
  printf '%s [y/N] ' "$1" >&2
  read -r answer || true
  [ "$answer" = y ] || [ "$answer" = Y ]
}}
"""


def as_script(plan: RollbackPlan) -> str:
    """The plan as a bash script. A refused step ends it. Variables are written to a file to source."""
    return "".join(f"{line}\n" for line in _script(plan))


def _script(plan: RollbackPlan) -> Iterator[str]:
    yield from (
        _SCRIPT_HEAD.format(lock=_comment(plan.lock), recorded=_comment(instant(plan.recorded)))
        .rstrip("\n")
        .split("\n")
    )
    if plan.caution:
        yield _say(f"Warning: {plan.caution}.")
    for number, step in enumerate(plan.steps, 1):
        title = _title(number, step)
        yield from ("", f"# {title}")
        yield from (f"#    {_comment(text)}" for text in step.restores)
        root = "yes" if step.needs_root or step.needs_reboot else "no"
        if step.elsewhere:
            yield from (_say(text) for text in (title, *(f"  {command}" for command in step.commands)))
            title = "Continue here without it?"
        yield f"if ! ask {quoted(title)} {root}; then echo 'Stopped before step {number}.' >&2; exit 1; fi"
        yield from _commands(step)
    yield from (_say(f"Not restored by these commands: {text}") for text in plan.by_hand)
    yield from (_say(f"Not compared: {text}") for text in plan.unread)
    yield _say(f"Done. Now run: {plan.again}")


def _commands(step: RollbackStep) -> Iterator[str]:
    if step.in_shell:
        # A script cannot change the shell that starts it.
        yield "cat > kdoctor-rollback.env <<'END_OF_VARIABLES'"
        yield from step.commands
        yield "END_OF_VARIABLES"
        yield ". ./kdoctor-rollback.env"
        yield from step.verify
        yield _say("Wrote kdoctor-rollback.env. Source it before the job, or set its variables where the job starts.")
    elif step.needs_reboot:
        *commands, reboot = step.commands
        yield from commands
        yield _say(f"Restart the machine ({reboot}), then verify:")
        yield from (_say(f"  {command}") for command in step.verify)
    elif not step.elsewhere:
        yield from step.commands
        yield from step.verify


def _say(text: str) -> str:
    return f"echo {quoted(text)} >&2"


def _comment(text: str) -> str:
    """The text without line breaks, which would end its comment."""
    return " ".join(text.split())
