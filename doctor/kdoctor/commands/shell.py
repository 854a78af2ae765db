"""Quoting, and variables of the shell."""

import re
import shlex

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def is_assignable(name: str) -> bool:
    """Whether a shell can set a variable of that name."""
    return _NAME.fullmatch(name) is not None


def quoted(*words: str) -> str:
    """The words separated by spaces, each quoted where the shell needs it."""
    return shlex.join(words)


def set_variable(name: str, value: str | None) -> str:
    """The command that exports the variable with that value, or unsets it for None.

    A name that a shell cannot set is a placeholder: ``unset`` would run the command in the index of ``a[$(command)]``.
    """
    shown = name if is_assignable(name) else quoted("<variable>")
    return f"unset {shown}" if value is None else f"export {shown}={quoted(value)}"
