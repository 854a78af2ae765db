"""A command group that imports a command when it runs (click's documented pattern for lazy subcommands)."""

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property, partial
from importlib.metadata import EntryPoint
from itertools import takewhile
from pkgutil import resolve_name
from typing import Any, ClassVar, Literal

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from kdoctor.cli.completion import complete_check
from kdoctor.cli.refused import named_like
from kdoctor.commands.again import called_here
from kdoctor.errors import UsageError, did_you_mean
from kdoctor.plugins.installed import load, named, origin_of
from kdoctor.text.lists import counted


class ChecklistCommand(TyperCommand):
    """A command that takes its checklist as an option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the arguments.

        Raises:
            UsageError: there is a positional argument. The hint shows it as ``--checklist``.
        """
        if ctx.resilient_parsing:  # a shell completes the command line
            return super().parse_args(ctx, args)
        options = [option for parameter in self.params for option in parameter.opts]
        if [word.partition("=")[0] for word in args].count("--snapshot") > 1:
            hint = "Import the files into one snapshot: kdoctor snapshot --import FILE FILE -o machine.json"
            raise UsageError("--snapshot is given more than once", hint=hint)
        for option, script, *words in (args[place:] for place in range(len(args) - 2)):
            own = list(takewhile(lambda word: word.partition("=")[0] not in options, words[words[0] == "--" :]))
            named = option in options and (option == "--model" or script.endswith((".py", ".ipynb")))
            if named and own and script[:1] != "-" and not get_close_matches(own[0], options, 1, 0.85):
                raise UsageError(f"unexpected argument {own[0]}", hint=_pass_on(option, script, own))
        values, rest, _ = self.make_parser(ctx).parse_args(args=list(args))
        without = [parameter.opts[0] for parameter in self.params if values.get(parameter.name) in options]
        if without:
            raise UsageError(f"{without[0]} requires a value, but an option follows it")
        if rest and not values.get("help"):
            before = args[: args.index(rest[0])][-2:-1]
            repeated = [option for parameter in self.params if parameter.multiple for option in parameter.opts]
            hint = ""
            if {*before} & {*repeated}:
                hint = f"Repeat the option: {before[0]} {shlex.quote(rest[0])}"
            elif rest[0].startswith("-"):  # after --
                hint = _pass_on("--model", str(values["model"]), rest) if values.get("model") else ""
            elif not values.get("checklist"):
                does, option = _meaning(rest[0], options)
                hint = f"To {does}: {ctx.command_path} {option} {shlex.quote(rest[0])}"
            raise UsageError(f"unexpected argument {' '.join(rest)}", hint=hint or None)
        return super().parse_args(ctx, args)


def _pass_on(option: str, script: str, words: Sequence[str]) -> str:
    """How to give a job its arguments."""
    return f"To pass it to {script}, quote both: {option} {shlex.quote(shlex.join([script, *words]))}"


def _meaning(word: str, options: Collection[str]) -> tuple[str, str]:
    """What a word without an option may be meant to do, and the option for it."""
    if word.endswith((".py", ".ipynb")) and "--model" in options:
        return "examine a job", "--model"
    if "--select" in options and word in complete_check(word):
        return "run only those checks", "--select"
    return "name a checklist", "--checklist"


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
        return _without_types(get_command(found))

    def placeholder(self, name: str, *, is_long: bool) -> Any:
        """What the list of commands shows of it, in a long list apart from those that most people need."""
        panel = "More" if is_long and self.place == "more" else None
        return TyperCommand(name, help=self.help, rich_help_panel=panel, hidden=self.place == "hidden")


def _with_example(command: Any, shown: Callable[..., None], ctx: Any, formatter: Any) -> None:
    """The help, whose example is one line as it can be pasted here: rich wraps it."""
    command.epilog, example = None, command.epilog
    shown(ctx, formatter)
    command.epilog = example
    typer.echo(f" {called_here(example or '')}")


def _without_types(command: Any) -> Any:
    """The command, and those below it, whose help shows no Python types and wraps each paragraph."""
    asked = command.get_params
    command.format_help = partial(_with_example, command, command.format_help)
    command.help = "\n\n".join(" ".join(part.split()) for part in (command.help or "").split("\n\n"))

    def get_params(ctx: Any) -> Any:
        return _plain(asked(ctx), ctx)

    command.get_params = get_params
    for member in getattr(command, "commands", {}).values():
        _without_types(member)
    return command


ADVANCED = "Advanced"
"""The panel of the options that few need. A long help shows it only with ``--help-all``."""
_MANY = 16
"""Options of a help that is not long."""
_shows_all = [False]


def ask_for_all(arguments: Sequence[str]) -> list[str]:
    """The arguments, of which ``--help-all`` is a ``--help`` that shows every option."""
    _shows_all[0] = "--help-all" in arguments
    return ["--help" if argument == "--help-all" else argument for argument in arguments]


_TYPES = {"str": "TEXT", "path": "PATH", "int": "N", "float": "SECONDS"}


def _type_shown(param: Any, ctx: Any) -> str | None:
    """The type of a value without Python's names: ``N`` for ``<int range>``. An argument's name says it."""
    shown = str(param.display_type(ctx)).strip("<>").removeprefix("list[").removesuffix("]").removesuffix(" range")
    is_named = param.param_type_name == "argument" and "|" not in shown
    return None if is_named else _TYPES.get(shown.lower(), shown)


def _plain(params: Iterable[Any], ctx: Any) -> list[Any]:
    """The parameters as the help shows them: flags have no type, and a long list leaves out what few need.

    A shell completes them all.
    """
    found, shows_all = list(params), _shows_all[0] or ctx.resilient_parsing
    rare = [param for param in found if getattr(param, "rich_help_panel", None) == ADVANCED]
    is_long = len(found) > _MANY
    for param in found:
        if getattr(param, "is_flag", False) or getattr(param, "count", False):
            param.metavar = ""
        elif param.metavar is None or param.param_type_name == "argument":
            param.display_type_rich = partial(_type_shown, param)
        if param.name in ("install_completion", "show_completion"):
            param.hidden = True  # docs/getting-started.md has them
        if param in rare:
            param.hidden = is_long and not shows_all
        if param.name == "help" and is_long and rare and not shows_all:
            param.help = f"Show this message and exit. {counted(len(rare), 'more option')}: --help-all"
    return found


class LazyGroup(TyperGroup):
    """A group whose subclass names its commands."""

    lazy_commands: ClassVar[Mapping[str, LazyCommand]]
    extensible: ClassVar[bool] = False
    """Whether plugins add commands to it, by the entry point ``kdoctor.commands``."""

    def __init__(self, **attrs: Any) -> None:
        super().__init__(**attrs)
        # Placeholders with the help text. resolve_command imports the command itself.
        self.format_help = partial(_with_example, self, super().format_help)  # type: ignore[method-assign]
        self.commands = {
            name: command.placeholder(name, is_long=self.extensible) for name, command in self.lazy_commands.items()
        }

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - click's signature
        """The names of its commands, the ones that most people need first."""
        known = {**self.lazy_commands, **self._added}
        return sorted(known, key=lambda name: (known[name].place != "front", list(known).index(name)))

    def get_params(self, ctx: Any) -> list[Any]:
        """Its options; the help shows no types of flags."""
        return _plain(super().get_params(ctx), ctx)

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
            if not self.extensible or not name.endswith((".py", ".ipynb", ".yaml", ".yml")):
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
        hint = f"To give it to a command: {ctx.command_path} {reads[0]} {shlex.quote(word)}" if reads else ""
        hint = hint or f"To see the commands: {ctx.command_path} --help"
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
