"""A rollback plan as text, and as a shell script that asks for confirmation before each step."""

from collections.abc import Iterator

from kdoctor.commands.script import comment, head, say, variables_file
from kdoctor.commands.shell import quoted
from kdoctor.report.phrases import instant
from kdoctor.rollback.document import RollbackPlan, RollbackStep
from kdoctor.text.sanitize import clean_line


def as_text(plan: RollbackPlan) -> str:
    """The plan for people. Every command can be pasted."""
    return "".join(f"{line}\n" for line in _text(plan))


def _text(plan: RollbackPlan) -> Iterator[str]:
    yield clean_line(f"Rollback to {plan.lock}, recorded {instant(plan.recorded)}")
    if plan.caution:
        yield f"Warning: {plan.caution}."
    if plan.is_empty:
        yield "Nothing that could be compared has drifted." if plan.unread else "Nothing recorded has drifted."
    for number, step in enumerate(plan.steps, 1):
        yield from ("", _title(number, step))
        yield from (f"     {line}" for line in step.restores)
        yield ""
        yield from (f"   {line}" for command in step.commands for line in command.split("\n"))
        yield "   # verify:"
        yield from (f"   {line}" for command in step.verify for line in command.split("\n"))
    if plan.by_hand:
        yield from ("", "Not restored by these commands:")
        yield from (f"  - {clean_line(text)}" for text in plan.by_hand)
    if plan.unread:
        yield from ("", "Not compared, and possibly changed too:")
        yield from (f"  - {clean_line(text)}" for text in plan.unread)
    after = "kdoctor has not changed anything. After the rollback, check again:"
    yield from ("", after if plan.steps else "To find what a lock does not record, check:", f"   {plan.again}")


def _title(number: int, step: RollbackStep) -> str:
    marks = [mark for mark, holds in (("needs root", step.needs_root), ("needs a reboot", step.needs_reboot)) if holds]
    marks += [step.elsewhere] if step.elsewhere else []
    return f"{number}. {step.title}" + (f" ({', '.join(marks)})" if marks else "")


def as_script(plan: RollbackPlan) -> str:
    """The plan as a bash script. A refused step ends it. Variables are written to a file to source."""
    return "".join(f"{line}\n" for line in _script(plan))


def _script(plan: RollbackPlan) -> Iterator[str]:
    yield from head(f"Rollback to {plan.lock}, recorded {instant(plan.recorded)}.", "kdoctor rollback --fix-script")
    if plan.caution:
        yield say(f"Warning: {plan.caution}.")
    for number, step in enumerate(plan.steps, 1):
        title = _title(number, step)
        yield from ("", f"# {comment(title)}")
        yield from (f"#    {comment(text)}" for text in step.restores)
        root = "yes" if step.needs_root else "no"
        if step.elsewhere:
            yield from (say(text) for text in (title, *(f"  {command}" for command in step.commands)))
            title = "Continue here without it?"
        yield f"if ! ask {quoted(title)} {root}; then echo 'Stopped before step {number}.' >&2; exit 1; fi"
        yield from _commands(step)
    yield from (say(clean_line(f"Not restored by these commands: {text}")) for text in plan.by_hand)
    yield from (say(clean_line(f"Not compared: {text}")) for text in plan.unread)
    yield say(f"Done. Now run: {plan.again}")


def _commands(step: RollbackStep) -> Iterator[str]:
    if step.in_shell:
        yield from variables_file("kdoctor-rollback.env", step.commands)
        yield from step.verify
        yield say("Wrote kdoctor-rollback.env. Source it before the job, or set its variables where the job starts.")
    elif step.needs_reboot:
        *commands, reboot = step.commands
        yield from commands
        yield say(f"Restart the machine ({reboot}), then verify:")
        yield from (say(f"  {command}") for command in step.verify)
    elif not step.elsewhere:
        yield from step.commands
        yield from step.verify
