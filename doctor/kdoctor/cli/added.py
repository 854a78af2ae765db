"""Options that plugins add to a command (entry point ``kdoctor.options``).

The name of such an entry point is the command's and the plugin's, ``check.job``, so that a command loads what it shows.
It is a function whose parameters are the options, with typer's annotations. It returns what they ask for, or None
without them: an ``AddedTraining`` for ``check``, a :class:`Recording` for ``snapshot``.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import typer
from typer.main import get_command

from kdoctor.cli.arguments import OptionsOnly
from kdoctor.facts import Facts
from kdoctor.plugins.installed import load, offers
from kdoctor.records import record

_ADDED = "kdoctor.added"

Value = TypeVar("Value")


@record
class Recording:
    """Facts that a snapshot contains instead of this machine's."""

    option: str
    """What asked for it."""
    why: str
    """Why options about this machine have no effect with it, as one sentence."""
    read: Callable[[], Facts]


class ExtensibleCommand(OptionsOnly):
    """A command whose options plugins extend."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._added: list[tuple[Callable[..., object], list[str]]] = []
        for entry in offers("options"):
            if entry.name.partition(".")[0] == self.name:
                app = typer.Typer(add_completion=False)
                app.command()(load(entry))
                command = get_command(app)
                assert command.callback  # noqa: S101 - typer made it of the function
                self._added.append((command.callback, [str(param.name) for param in command.params]))
                self.params += command.params

    def invoke(self, ctx: Any) -> Any:
        """Run the command, with what the plugins made of their options in its context."""
        found = [ask(**{name: ctx.params.pop(name) for name in names}) for ask, names in self._added]
        ctx.meta[_ADDED] = tuple(value for value in found if value is not None)
        return super().invoke(ctx)


def added(context: typer.Context, kind: type[Value]) -> tuple[Value, ...]:
    """What the options of plugins ask for, of one kind."""
    return tuple(value for value in context.meta.get(_ADDED, ()) if isinstance(value, kind))
