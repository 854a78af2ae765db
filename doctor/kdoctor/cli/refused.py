"""What typer refuses to parse, as kdoctor's own usage errors: one form for all, with what to do next."""

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from traceback import walk_tb
from typing import Any

from kdoctor.commands.again import program
from kdoctor.commands.shell import quoted
from kdoctor.errors import UsageError, did_you_mean
from kdoctor.text.sanitize import clean

_PYDANTIC = re.compile("^Value error, |, unable to parse.*")
_OPTION = re.compile(r"--[\w-]+")
_QUOTED = re.compile(r"'([^']*)'")
_NOT_AMONG, _NO_COMMAND = " is not one of ", "No such command"


@contextmanager
def refused_by_typer() -> Iterator[None]:
    """Raise typer's errors about arguments as usage errors.

    Raises:
        UsageError: typer refuses an argument.
    """
    try:
        yield
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        # typer's parser leaves out the context where a value is missing.
        contexts = [frame.f_locals.get("ctx") for frame, _ in walk_tb(error.__traceback__)]
        context: Any = getattr(error, "ctx", None) or next(filter(None, reversed(contexts)), None)
        message = clean(_message(error, context))  # it repeats the arguments
        hidden = [name for param in context.command.params if param.hidden for name in param.opts] if context else []
        shown = "--help-all" if any(name in hidden for name in _OPTION.findall(message)) else "--help"
        hint = f"To see what it takes: {called(context)} {shown}" if context else None
        if context and (context.parent is None or _NO_COMMAND in message):
            hint = f"To see the commands: {called(context)} --help"
        raise UsageError(message[:1].lower() + message[1:].rstrip("."), hint=hint) from error


def called(context: Any) -> str:
    """The command as a shell finds it here, which may know no ``kdoctor``."""
    return quoted(*program()) + str(context.command_path).removeprefix(context.find_root().info_name)


def _message(error: Any, context: Any) -> str:
    """What typer says, with the one that may be meant."""
    options = [option for param in context.command.params for option in param.opts] if context else []
    if hasattr(error, "possibilities"):
        meant = named_like(error.option_name, options)
        passed_on = any("[-- " in str(param.metavar) for param in context.command.params)
        return f"{error.message}{meant}" + (f"; to pass it on: -- {error.option_name}" if passed_on else "")
    said = error.message.replace("Input should be", "it must be").replace("a valid integer", "an integer")
    word, *choices = _QUOTED.findall(said) if _NOT_AMONG in said or _NO_COMMAND in said else [""]
    if _NO_COMMAND in said:
        return f"{_NO_COMMAND}: {word}{did_you_mean(word, context.command.commands)}"
    error.message = _PYDANTIC.sub("", said).rstrip(".") + did_you_mean(word, choices)
    return str(error.format_message())


def named_like(word: str, options: Iterable[str]) -> str:
    """``; did you mean '--x'?`` by what follows the dashes, or an empty string."""
    names = {option.lstrip("-"): option for option in options if option.startswith("--")}
    meant = did_you_mean(word.lstrip("-"), names)
    return meant.replace("mean '", "mean '--")
