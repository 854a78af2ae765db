"""Options that plugins add to a command (entry point ``kdoctor.options``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import typer
from typer.main import get_command

from kdoctor.cli.lazy import ChecklistCommand
from kdoctor.facts import Facts
from kdoctor.plugins.installed import load, offers

_ADDED = "kdoctor.added"

Value = TypeVar("Value")


@dataclass(frozen=True, kw_only=True)
class AddedOptions:
    """Options of one plugin for one command."""

    command: str
    """``check`` or ``snapshot``."""
    function: Callable[..., object]
    """Its parameters are the options, with typer's annotations. It returns what they ask for, or None without them: an
    ``AddedTraining`` for ``check``, a :class:`Recording` for ``snapshot``."""


@dataclass(frozen=True, kw_only=True)
class Recording:
    """Facts that a snapshot contains instead of this machine's."""

    option: str
    """What asked for it."""
    why: str
    """Why options about this machine have no effect with it, as one sentence."""
    read: Callable[[], Facts]


class ExtensibleCommand(ChecklistCommand):
    """A command whose options plugins extend."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._added: list[tuple[Callable[..., object], list[str]]] = []
        for entry in offers("options"):
            options: AddedOptions = load(entry)
            if options.command == self.name:
                app = typer.Typer(add_completion=False)
                app.command(entry.name)(options.function)
                command = get_command(app)
                names = [str(param.name) for param in command.params]
                self._added.append((command.callback or options.function, names))
                self.params += command.params

    def invoke(self, ctx: Any) -> Any:
        """Run the command, with what the plugins made of their options in its context."""
        found = [ask(**{name: ctx.params.pop(name) for name in names}) for ask, names in self._added]
        ctx.meta[_ADDED] = tuple(value for value in found if value is not None)
        return super().invoke(ctx)


def added(context: typer.Context, kind: type[Value]) -> tuple[Value, ...]:
    """What the options of plugins ask for, of one kind."""
    return tuple(value for value in context.meta.get(_ADDED, ()) if isinstance(value, kind))
