"""Options that plugins add to ``kdoctor check`` (entry point ``kdoctor.options``)."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperOption
from typer.main import get_command

from kdoctor.cli.lazy import ChecklistCommand
from kdoctor.plugins.installed import load, offers
from kdoctor.smoke.scenario import AskedTraining

_ASKED = "kdoctor.asked"


class ExtensibleCommand(ChecklistCommand):
    """A command whose options plugins extend.

    A plugin gives a function with typer's annotations that returns an ``AskedTraining``, or None without its options.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._added = []
        for entry in offers("options"):
            app = typer.Typer(add_completion=False)
            app.command(entry.name)(load(entry))
            command = get_command(app)
            options = [param for param in command.params if isinstance(param, TyperOption) and param.name != "help"]
            self._added.append((command, [option.name for option in options]))
            self.params += options

    def invoke(self, ctx: Any) -> Any:
        """Run the command, with what the plugins made of their options in its context."""
        asked = []
        for command, names in self._added:
            found = ctx.invoke(command, **{name: ctx.params.pop(name) for name in names})
            asked += [found] if found else []
        ctx.meta[_ASKED] = tuple(asked)
        return super().invoke(ctx)


def asked_trainings(context: typer.Context) -> tuple[AskedTraining, ...]:
    """What the options of plugins ask for."""
    found: tuple[AskedTraining, ...] = context.meta.get(_ASKED, ())
    return found
