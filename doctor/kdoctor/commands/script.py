"""Bash scripts that ask for confirmation before each step."""

from collections.abc import Sequence

from kdoctor.commands.shell import quoted
from kdoctor.text.sanitize import clean

_HEAD = """\
#!/usr/bin/env bash
# {title}
# Written by `{command}`. It asks before each step. --yes confirms all steps that do not need root.
set -euo pipefail

assume_yes=no
if [ "${{1:-}}" = --yes ]; then assume_yes=yes; fi

ask() {{  # ask QUESTION ROOT: whether to run the step
  if [ "$assume_yes" = yes ] && [ "$2" = no ]; then return 0; fi
  local answer=no
  printf '%s [y/N] ' "$1" >&2
  read -r answer || true
  [ "$answer" = y ] || [ "$answer" = Y ]
}}"""


def head(title: str, command: str) -> list[str]:
    """The first lines: what the script does, and the function ``ask``.

    Args:
        title: one sentence.
        command: the command that wrote the script.
    """
    return _HEAD.format(title=comment(title), command=comment(command)).split("\n")


def say(text: str) -> str:
    """The command that prints a text to stderr."""
    return f"echo {quoted(clean(text))} >&2"


def comment(text: str) -> str:
    """The text as the rest of a comment: on one line, without control characters."""
    return clean(" ".join(text.split()))


def is_for_this_shell(command: str) -> bool:
    """Whether a command changes the shell that runs it, which a script cannot do for its caller."""
    return command.partition(" ")[0] in ("export", "unset", "ulimit")


def variables_file(name: str, commands: Sequence[str]) -> list[str]:
    """Write commands that change the shell to a file to source, and source it.

    They are quoted arguments and not a here-document, whose end a value could contain.
    """
    return [f"printf '%s\\n' {quoted(*commands)} > {name}", f". ./{name}"]
