"""The plan of fixes as a bash script that asks for confirmation before each step."""

import re
from collections.abc import Iterator

from kdoctor.commands.script import comment, head, is_for_this_shell, say, variables_file
from kdoctor.commands.shell import quoted
from kdoctor.engine.report import FixStep, Report
from kdoctor.report.phrases import check_again, verdict_line
from kdoctor.text.canvas import Canvas

_FILE = "kdoctor-fix.env"
_CHECKS = re.compile(r"(?:^|[/ ])(?:kdoctor|keras-doctor)'? (?:check|smoke)\b")
_PLACEHOLDER = re.compile(r"'<[^<>']+>'|<[A-Za-z][^<>]*>")


def render_fix_script(report: Report, canvas: Canvas) -> str:
    """The fixes as a bash script. A refused step is left out.

    Commands that only read are comments. Commands with placeholders, and a restart of the machine, are printed and not
    run. Rollbacks are left to ``kdoctor rollback``. A way to start without a fix is for the job's shell, and left out.
    """
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    yield from head(verdict_line(report), "kdoctor check --fix-script")
    fixes = [step for step in report.plan if step.kind == "fix" and (step.commands or step.look)]
    if not fixes:
        yield from ("", say("Nothing to fix by a command."))
    for number, step in enumerate(fixes, 1):
        yield from ("", f"# {number}. {comment(step.summary)} ({', '.join(step.solves)})")
        if step.commands:
            yield from (f"#    To look first: {comment(command)}" for command in step.look)
        yield from _step(number, step)
    if report.command:
        yield from ("", say(f"{check_again(report)}: {report.command}"))


def _step(number: int, step: FixStep) -> Iterator[str]:
    # A check by kdoctor fails where something else is left to fix, which would end the script.
    by_hand = [
        command
        for command in step.commands
        if _PLACEHOLDER.search(command) or "reboot" in command.split() or _CHECKS.search(command)
    ]
    variables = [command for command in step.commands if is_for_this_shell(command) and command not in by_hand]
    run = [command for command in step.commands if command not in (*by_hand, *variables)]
    if run or variables:
        root = "yes" if any("sudo" in command.split() for command in run) else "no"
        yield f"if ask {quoted(f'{number}. {comment(step.summary)}')} {root}; then"
        yield from run
        if variables:
            yield from variables_file(_FILE, variables)
            yield say(f"Wrote {_FILE}. Source it before the job, or set its variables where the job starts.")
        yield "fi"
    for command in by_hand:
        yield say(f"{number}. To run by hand: {command}")
    if not step.commands:
        yield say(f"{number}. {step.summary} To look first: {'; '.join(step.look)}")
