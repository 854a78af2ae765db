"""What a help shows: an example that can be pasted, no types of Python, and few options of many."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import typer

from kdoctor.commands.again import called_here
from kdoctor.text.lists import counted

ADVANCED = "Advanced"
"""The panel of the options that few need. A long help shows it only with ``--help-all``."""
_MANY = 16
"""Options of a help that is not long."""
_shows_all = [False]


def with_example(command: Any, shown: Callable[..., None], ctx: Any, formatter: Any) -> None:
    """The help, whose example is one line as it can be pasted here: rich wraps it."""
    command.epilog, example = None, command.epilog
    shown(ctx, formatter)
    command.epilog = example
    typer.echo(f" {called_here(example or '')}")


def without_types(command: Any) -> Any:
    """The command, and those below it, whose help shows no Python types and wraps each paragraph."""
    asked = command.get_params
    command.format_help = partial(with_example, command, command.format_help)
    command.help = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))

    def get_params(ctx: Any) -> Any:
        return shown_plainly(asked(ctx), ctx)

    command.get_params = get_params
    for member in getattr(command, "commands", {}).values():
        without_types(member)
    return command


def ask_for_all(arguments: Sequence[str]) -> list[str]:
    """The arguments, of which ``--help-all`` is a ``--help`` that shows every option."""
    _shows_all[0] = "--help-all" in arguments
    return ["--help" if argument == "--help-all" else argument for argument in arguments]


_TYPES = {"str": "TEXT", "path": "PATH", "int": "N", "float": "SECONDS"}


def _type_shown(param: Any, ctx: Any) -> str | None:
    """The type of a value without Python's names: ``N`` for ``<int range>``. An argument's name says it."""
    shown = str(param.display_type(ctx)).strip("<>").removeprefix("list[").removesuffix("]").removesuffix(" range")
    is_named = param.param_type_name == "argument" and "|" not in shown
    return None if is_named else _TYPES.get(shown.lower(), shown)


def shown_plainly(params: Iterable[Any], ctx: Any) -> list[Any]:
    """The parameters as the help shows them: flags have no type, and a long list leaves out what few need.

    A shell completes them all.
    """
    found, shows_all = list(params), _shows_all[0] or ctx.resilient_parsing
    rare = [param for param in found if getattr(param, "rich_help_panel", None) == ADVANCED]
    is_long = len(found) > _MANY
    for param in found:
        if getattr(param, "is_flag", False) or getattr(param, "count", False):
            param.metavar = ""
        elif param.metavar is None or param.param_type_name == "argument":
            param.display_type_rich = partial(_type_shown, param)
        if param.name in ("install_completion", "show_completion"):
            param.hidden = True  # docs/getting-started.md has them
        if param in rare:
            param.hidden = is_long and not shows_all
        if param.name == "help" and is_long and rare and not shows_all:
            param.help = f"Show this message and exit. {counted(len(rare), 'more option')}: --help-all"
    return found
