"""A command group that imports a command when it runs (click's documented pattern for lazy subcommands)."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.metadata import EntryPoint
from pkgutil import resolve_name
from typing import Any, ClassVar, Literal

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from kdoctor.cli.arguments import FILES
from kdoctor.cli.help import shown_plainly, with_example, without_types
from kdoctor.cli.refused import called, named_like
from kdoctor.errors import UsageError, did_you_mean
from kdoctor.plugins.installed import load, named, origin_of

Place = Literal["front", "more", "hidden"]


@dataclass(frozen=True)
class LazyCommand:
    """A command and what the list of commands shows of it."""

    target: str
    """``module:attribute`` of its function or of its typer application."""
    help: str
    epilog: str | None = None
    kind: str = "typer.core:TyperCommand"
    """``module:attribute`` of its class."""
    place: Place = "more"
    """Where the list of commands shows it."""
    reads: tuple[str, ...] = ()
    """Endings of files that only this command reads, for a command line that names a file and no command."""

    def load(self, name: str) -> Any:
        """Import the command."""
        try:
            found = resolve_name(self.target)
        except (ImportError, AttributeError) as error:
            if self.target.startswith("kdoctor"):
                raise
            raise UsageError(f"the command {name} cannot be loaded from {self.target}: {error}") from error
        if not isinstance(found, typer.Typer):
            app = typer.Typer(add_completion=False)
            app.command(name, epilog=self.epilog, cls=resolve_name(self.kind))(found)
            found = app
        return without_types(get_command(found))

    def placeholder(self, name: str, *, is_long: bool) -> Any:
        """What the list of commands shows of it, in a long list apart from those that most people need."""
        panel = "More" if is_long and self.place == "more" else None
        return TyperCommand(name, help=self.help, rich_help_panel=panel, hidden=self.place == "hidden")


class LazyGroup(TyperGroup):
    """A group whose subclass names its commands."""

    lazy_commands: ClassVar[Mapping[str, LazyCommand]]
    extensible: ClassVar[bool] = False
    """Whether plugins add commands to it, by the entry point ``kdoctor.commands``."""

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        # Placeholders with the help text. resolve_command imports the command itself.
        self.format_help = partial(with_example, self, super().format_help)  # type: ignore[method-assign]
        self.commands = {
            name: command.placeholder(name, is_long=self.extensible) for name, command in self.lazy_commands.items()
        }

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's signature
        """The names of its commands, the ones that most people need first."""
        known = {**self.lazy_commands, **self._added}
        return sorted(known, key=lambda name: (known[name].place != "front", list(known).index(name)))

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options; the help shows no types of flags."""
        return shown_plainly(super().get_params(ctx), ctx)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """What the list of commands shows of a command; None for an unknown one."""
        found = super().get_command(ctx, cmd_name)
        if found is None and cmd_name in self._added:
            return self._added[cmd_name].placeholder(cmd_name, is_long=True)
        return found

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command to run and its arguments."""
        name, *rest = args
        if self.get_command(ctx, name) is None:
            if not self.extensible or not name.endswith(FILES):
                raise self._unknown(ctx, name)
            name, rest = "check", args  # which says with which option it takes such a file
        command = self.lazy_commands.get(name) or self._added[name]
        return name, command.load(name), rest

    def _unknown(self, ctx: Any, word: str) -> UsageError:
        known = {**self.lazy_commands, **self._added}
        inner = [name for name, one in known.items() if word in getattr(one.load(name), "commands", ())]
        reads = [name for name, one in known.items() if one.reads and word.endswith(one.reads)]
        options = [option for param in self.params for option in param.opts]
        meant = f"; did you mean '{inner[0]} {word}'?" if inner else did_you_mean(word, known)
        if word[:1].isdigit() and "--tensorflow" in options:
            meant = f"; did you mean '--tensorflow {word}'?"
        hint = f"To give it to a command: {called(ctx)} {reads[0]} {shlex.quote(word)}" if reads else ""
        hint = hint or f"To see the commands: {called(ctx)} --help"
        return UsageError(f"no such command: {word}{meant or named_like(word, options)}", hint=hint)

    @cached_property
    def _added(self) -> dict[str, LazyCommand]:
        """The commands of plugins. Finding them takes longer than running some of kdoctor's own."""
        if not self.extensible:
            return {}
        found = {name: (entry, load(entry)) for name, entry in sorted(named("commands", self.lazy_commands).items())}
        return {name: _lazy(entry, command) for name, (entry, command) in found.items()}


def _lazy(entry: EntryPoint, command: object) -> LazyCommand:
    """What a plugin gives as a command: a ``LazyCommand``, or an application of typer.

    Raises:
        UsageError: it is something else.
    """
    if isinstance(command, LazyCommand):
        return command
    if isinstance(command, typer.Typer):
        return LazyCommand(entry.value, command.info.help or "")
    raise UsageError(f"{origin_of(entry)}: {entry.value} is neither a LazyCommand nor an application of typer")
