"""Quoting, and variables of the shell."""

from __future__ import annotations

import shlex


def quoted(*words: str) -> str:
    """The words separated by spaces, each quoted where the shell needs it."""
    return shlex.join(words)


def set_variable(name: str, value: str | None) -> str:
    """The command that exports the variable with that value, or unsets it for None."""
    return f"unset {name}" if value is None else f"export {name}={quoted(value)}"
