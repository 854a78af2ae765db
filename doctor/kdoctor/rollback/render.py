"""A way back as text, as a shell script that asks before it acts, and as JSON."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator

from kdoctor.rollback.model import RollbackPlan, RollbackStep

SCHEMA = "kdoctor/rollback/v1"


def as_text(plan: RollbackPlan) -> str:
    """The way back for people: every command can be pasted."""
    return "".join(f"{line}\n" for line in _text(plan))


def _text(plan: RollbackPlan) -> Iterator[str]:
    yield f"Back to {plan.lock}, recorded {plan.recorded}"
    if plan.caution:
        yield f"Beware: {plan.caution}."
    if plan.is_empty:
        yield "Nothing has drifted" + (
            " of what could be compared." if plan.unread else ": there is nothing to roll back."
        )
    for number, step in enumerate(plan.steps, 1):
        yield ""
        yield f"{number}. {step.title}{_marks(step)}"
        yield from (f"     {line}" for line in step.restores)
        yield ""
        yield from (f"   {line}" for command in step.commands for line in command.split("\n"))
        yield "   # verify:"
        yield from (f"   {line}" for command in step.verify for line in command.split("\n"))
    if plan.by_hand:
        yield from ("", "Not undone by a command:")
        yield from (f"  - {text}" for text in plan.by_hand)
    if plan.unread:
        yield from ("", "Not compared, so there may be more:")
        yield from (f"  - {text}" for text in plan.unread)
    if plan.steps:
        yield from ("", "kdoctor itself has changed nothing. Then examine the machine again:", f"   {plan.again}")


def _marks(step: RollbackStep) -> str:
    marks = [word for word, holds in (("needs root", step.needs_root), ("needs a reboot", step.needs_reboot)) if holds]
    marks += [step.elsewhere] if step.elsewhere else []
    return f" ({', '.join(marks)})" if marks else ""


def as_json(plan: RollbackPlan) -> str:
    """The way back for programs."""
    document = {
        "schema": SCHEMA,
        "lock": plan.lock,
        "recorded": plan.recorded,
        "caution": plan.caution,
        "steps": [
            {
                "title": step.title,
                "restores": list(step.restores),
                "commands": list(step.commands),
                "verify": list(step.verify),
                "needs_root": step.needs_root,
                "needs_reboot": step.needs_reboot,
                "in_shell": step.in_shell,
                "elsewhere": step.elsewhere,
            }
            for step in plan.steps
        ],
        "by_hand": list(plan.by_hand),
        "unread": list(plan.unread),
        "again": plan.again,
    }
    return json.dumps(document, indent=2) + "\n"


_SCRIPT_HEAD = """\
#!/usr/bin/env bash
# The way back to {lock}, recorded {recorded}.
# Written by `kdoctor rollback --script`. It asks before every step; --yes answers for all that need no root.
set -euo pipefail

assume_yes=no
if [ "${{1:-}}" = --yes ]; then assume_yes=yes; fi

ask() {{  # ask QUESTION ROOT: whether to take the step
  if [ "$assume_yes" = yes ] && [ "$2" = no ]; then return 0; fi
  local answer=no
  printf '%s [y/N] ' "$1" >&2
  read -r answer || true
  [ "$answer" = y ] || [ "$answer" = Y ]
}}
"""


def as_script(plan: RollbackPlan) -> str:
    """The way back as a bash script. A step that is refused ends it; variables go to a file that is to be sourced."""
    return "".join(f"{line}\n" for line in _script(plan))


def _script(plan: RollbackPlan) -> Iterator[str]:
    yield from _SCRIPT_HEAD.format(lock=_comment(plan.lock), recorded=_comment(plan.recorded)).rstrip("\n").split("\n")
    if plan.caution:
        yield f"echo {shlex.quote(f'Beware: {plan.caution}.')} >&2"
    for number, step in enumerate(plan.steps, 1):
        yield from ("", f"# {number}. {step.title}{_marks(step)}")
        yield from (f"#    {_comment(text)}" for text in step.restores)
        root = "yes" if step.needs_root or step.needs_reboot else "no"
        question = shlex.quote(f"{number}. {step.title}{_marks(step)}")
        if step.elsewhere:
            yield from (f"echo {shlex.quote(text)} >&2" for text in (f"{number}. {step.title}{_marks(step)}",))
            yield from (f"echo {shlex.quote('  ' + command)} >&2" for command in step.commands)
            question = "'Go on here without it?'"
        yield f"if ! ask {question} {root}; then echo 'Stopped before step {number}.' >&2; exit 1; fi"
        yield from _commands(step)
    for text in plan.by_hand:
        yield f"echo {shlex.quote(f'Not undone by a command: {text}')} >&2"
    for text in plan.unread:
        yield f"echo {shlex.quote(f'Not compared: {text}')} >&2"
    yield f"echo {shlex.quote(f'Done. Now run: {plan.again}')} >&2"


def _commands(step: RollbackStep) -> Iterator[str]:
    if step.in_shell:
        # A script cannot change the shell that starts it.
        yield "cat > kdoctor-rollback.env <<'END_OF_VARIABLES'"
        yield from step.commands
        yield "END_OF_VARIABLES"
        yield ". ./kdoctor-rollback.env"
        yield from step.verify
        yield "echo 'Wrote kdoctor-rollback.env: source it before the job, or set these where the job gets them.' >&2"
    elif step.elsewhere:
        return
    elif step.needs_reboot:
        *commands, reboot = step.commands
        yield from commands
        yield f"echo 'Restart the machine ({reboot}), then verify:' >&2"
        yield from (f"echo {shlex.quote('  ' + command)} >&2" for command in step.verify)
    else:
        yield from step.commands
        yield from step.verify


def _comment(text: str) -> str:
    """A text that stays in its comment's line."""
    return " ".join(text.split())
