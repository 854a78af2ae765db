"""A command that takes options only, and says which one a word without an option is meant for."""

import shlex
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from itertools import takewhile
from pathlib import Path
from typing import Any

from typer.core import TyperCommand

from kdoctor.cli.completion import complete_check
from kdoctor.cli.refused import called
from kdoctor.errors import UsageError

SCRIPTS = (".py", ".ipynb")
"""Endings of the files that may be a job."""
FILES = (*SCRIPTS, ".yaml", ".yml")
"""Endings of the files that ``check`` reads: jobs and checklists."""


class OptionsOnly(TyperCommand):
    """A command that takes no words without an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            UsageError: there is a word without an option, or an option twice. The hint shows what may be meant.
        """
        if not ctx.resilient_parsing:  # a shell completes the command line
            options = [option for parameter in self.params for option in parameter.opts]
            _refuse_second_snapshot(args)
            _refuse_arguments_of_a_job(args, options)
            values, rest, _ = self.make_parser(ctx).parse_args(args=list(args))
            without = [parameter.opts[0] for parameter in self.params if values.get(parameter.name) in options]
            if without:
                ctx.fail(f"{without[0]} requires a value, but an option follows it")
            if rest and not values.get("help"):
                hint = self._meant(ctx, rest, values, before=args[: args.index(rest[0])][-2:-1])
                raise UsageError(f"unexpected argument {' '.join(rest)}", hint=hint)
        return super().parse_args(ctx, args)

    def _meant(self, ctx: Any, rest: Sequence[str], values: Mapping[str, Any], *, before: Sequence[str]) -> str | None:
        """What the first word without an option may be meant for. ``before`` is the option in front of the last one."""
        word = rest[0]
        if {*before} & {option for parameter in self.params if parameter.multiple for option in parameter.opts}:
            return f"Repeat the option: {before[0]} {shlex.quote(word)}"
        if word.startswith("-"):  # after --
            return _passed_on("--model", str(values["model"]), rest) if values.get("model") else None
        if values.get("checklist"):
            return None
        does, option = _meaning(word, [option for parameter in self.params for option in parameter.opts])
        return f"To {does}: {called(ctx)} {option} {shlex.quote(word)}"


def _refuse_second_snapshot(args: Sequence[str]) -> None:
    if [word.partition("=")[0] for word in args].count("--snapshot") > 1:
        hint = "Import the files into one snapshot: kdoctor snapshot --import FILE FILE -o machine.json"
        raise UsageError("--snapshot is given more than once", hint=hint)


def _refuse_arguments_of_a_job(args: Sequence[str], options: Collection[str]) -> None:
    """Words behind a job's script that look like its own arguments, which belong into its quotes."""
    for option, script, *words in (args[place:] for place in range(len(args) - 2)):
        own = list(takewhile(lambda word: word.partition("=")[0] not in options, words[words[0] == "--" :]))
        named = option in options and (option == "--model" or script.endswith(SCRIPTS))
        if named and own and script[:1] != "-" and not get_close_matches(own[0], options, 1, 0.85):
            raise UsageError(f"unexpected argument {own[0]}", hint=_passed_on(option, script, own))


def _passed_on(option: str, script: str, words: Sequence[str]) -> str:
    """How to give a job its arguments."""
    return f"To pass it to {script}, quote both: {option} {shlex.quote(shlex.join([script, *words]))}"


def _meaning(word: str, options: Collection[str]) -> tuple[str, str]:
    """What a word without an option may be meant to do, and the option for it."""
    if word.endswith(SCRIPTS) and "--model" in options:
        return "examine a job", "--model"
    if "--select" in options and word in complete_check(word):
        return "run only those checks", "--select"
    if "--snapshot" in options and Path(word).is_file() and not word.endswith(FILES):
        return "judge a recording", "--snapshot"
    return "name a checklist", "--checklist"
