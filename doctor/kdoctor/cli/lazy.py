"""A command group that imports a command when it runs (click's documented pattern for lazy subcommands)."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pkgutil import resolve_name
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from kdoctor.errors import UsageError
from kdoctor.plugins.installed import load, named


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
    kind: str = "typer.core:TyperCommand"
    """``module:attribute`` of its class."""

    def load(self, name: str) -> Any:
        """Import the command."""
        found = resolve_name(self.target)
        if not isinstance(found, typer.Typer):
            app = typer.Typer(add_completion=False)
            app.command(name, epilog=self.epilog, cls=resolve_name(self.kind))(found)
            found = app
        return get_command(found)


class LazyGroup(TyperGroup):
    """A group whose subclass names its commands."""

    lazy_commands: ClassVar[Mapping[str, LazyCommand]]
    extensible: ClassVar[bool] = False
    """Whether plugins add commands to it, by the entry point ``kdoctor.commands``."""

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        # Placeholders with the help text. resolve_command imports the command itself.
        self.commands = {name: TyperCommand(name, help=command.help) for name, command in self.lazy_commands.items()}

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's signature
        """The names of its commands, those of plugins last."""
        return [*self.commands, *self._added]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """What the list of commands shows of a command; None for an unknown one."""
        found = super().get_command(ctx, cmd_name)
        if found is None and cmd_name in self._added:
            return TyperCommand(cmd_name, help=self._added[cmd_name].help)
        return found

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command to run and its arguments."""
        name, placeholder, rest = super().resolve_command(ctx, args)
        if not (name and placeholder):
            return name, None, rest
        command = self.lazy_commands.get(name) or self._added[name]
        return name, command.load(name), rest

    @cached_property
    def _added(self) -> dict[str, LazyCommand]:
        """The commands of plugins. Finding them takes longer than running some of kdoctor's own."""
        if not self.extensible:
            return {}
        return {name: load(entry) for name, entry in sorted(named("commands", self.lazy_commands).items())}
