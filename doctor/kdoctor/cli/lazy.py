"""A command group that imports a command when it runs (click's documented pattern for lazy subcommands)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from kdoctor.errors import UsageError


class ChecklistCommand(TyperCommand):
    """A command that takes its checklist as an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            UsageError: there is a positional argument. The hint shows it as ``--checklist``.
        """
        if ctx.resilient_parsing:  # a shell completes the command line
            return super().parse_args(ctx, args)
        values, rest, _ = self.make_parser(ctx).parse_args(args=list(args))
        if rest and not values.get("help"):
            raise UsageError(
                f"unexpected argument {' '.join(rest)}",
                hint=f"To name a checklist: {ctx.command_path} --checklist {shlex.quote(rest[0])}",
            )
        return super().parse_args(ctx, args)


@dataclass(frozen=True)
class LazyCommand:
    """A command and what the list of commands shows of it."""

    target: str
    """``module:attribute`` of its function or of its typer application."""
    help: str
    epilog: str | None = None
    kind: type[TyperCommand] = TyperCommand

    def load(self, name: str) -> Any:
        """Import the command."""
        module, _, attribute = self.target.partition(":")
        found = getattr(import_module(module), attribute)
        if not isinstance(found, typer.Typer):
            app = typer.Typer(add_completion=False)
            app.command(name, epilog=self.epilog, cls=self.kind)(found)
            found = app
        return get_command(found)


class LazyGroup(TyperGroup):
    """A group whose subclass names its commands."""

    lazy_commands: ClassVar[Mapping[str, LazyCommand]]

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        # Placeholders with the help text. resolve_command imports the command itself.
        self.commands = {name: TyperCommand(name, help=command.help) for name, command in self.lazy_commands.items()}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command to run and its arguments."""
        name, placeholder, rest = super().resolve_command(ctx, args)
        return name, self.lazy_commands[name].load(name) if name and placeholder else None, rest
