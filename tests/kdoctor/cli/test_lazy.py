"""``--help`` imports no command, and every command describes itself."""

import re
import sys
from pathlib import Path

import pytest

from helpers.cases import cases
from helpers.command import captured, kdoctor_here
from kdoctor.cli import _ChecklistCommands, _Commands
from kdoctor.cli.history import app as history_app
from kdoctor.cli.lazy import LazyCommand
from kdoctor.plugins.installed import load, named

YARDSTICK = Path(__file__).parents[3] / "benchmarks" / "two_commands.py"
PROGRAM = """
import runpy, sys
sys.argv[1:] = ["--help"]
try:
    {run}
except SystemExit:
    pass
print(*sys.modules, file=sys.stderr)
"""


ADDED: dict[str, LazyCommand] = {name: load(entry) for name, entry in named("commands").items()}
"""The commands of extensions."""


def modules_of(run: str) -> set[str]:
    done = captured([sys.executable, "-c", PROGRAM.format(run=run)], check=True)
    return set(done.stderr.split())


def test_help_imports_nothing_beyond_typer() -> None:
    empty = modules_of(f"runpy.run_path({str(YARDSTICK)!r}, run_name='__main__')")
    ours = modules_of("from kdoctor.cli import main; main()")
    extra = {name for name in ours - empty if name.partition(".")[0] not in {"kdoctor", *sys.stdlib_module_names}}
    # Of an extension, only what names its command.
    packages = {entry.value.partition(".")[0] for entry in named("commands").values()}
    assert extra <= packages | {f"{name}.plugin" for name in packages}
    commands = {command.target.partition(":")[0] for command in _Commands.lazy_commands.values()}
    assert commands & ours == {"kdoctor.cli"}


@cases(*_Commands.lazy_commands.items(), *_ChecklistCommands.lazy_commands.items(), *ADDED.items())
def test_list_of_commands_repeats_the_help_of_each(name: str, command: LazyCommand) -> None:
    loaded = command.load(name)
    assert loaded.help.splitlines()[0] == command.help
    assert loaded.epilog


@pytest.mark.parametrize(
    "arguments",
    [
        *((name,) for name in _Commands.lazy_commands),
        *(("checklist", name) for name in _ChecklistCommands.lazy_commands),
        *(("history", info.name or info.callback.__name__) for info in history_app.registered_commands),  # type: ignore[union-attr]
    ],
    ids=" ".join,
)
def test_help_of_each_command_has_an_example(arguments: tuple[str, ...]) -> None:
    done = kdoctor_here(*arguments, "--help")
    assert done.returncode == 0
    assert f"kdoctor {arguments[0]}" in done.stdout.splitlines()[1]
    assert any(line.strip().startswith(("Example:", "Set up:")) for line in done.stdout.splitlines())
    assert not re.search("<[a-z]", done.stdout)  # a type of Python


def test_version_is_printed() -> None:
    assert kdoctor_here("--version").stdout.startswith("kdoctor ")


@pytest.mark.parametrize("group", [(), ("checklist",)], ids=str)
def test_bare_command_is_its_help(group: tuple[str, ...]) -> None:
    bare, asked = kdoctor_here(*group), kdoctor_here(*group, "--help")
    assert (bare.returncode, bare.stdout, bare.stderr) == (0, asked.stdout, asked.stderr)


def test_help_of_check_groups_its_options() -> None:
    short, whole = (kdoctor_here("check", option).stdout for option in ("--help", "--help-all"))
    panels = re.findall(r"^╭─ (.+?) ─", short, re.MULTILINE)
    assert panels == ["Options", "What to examine", "What to expect", "Output"]
    assert set(re.findall(r"^╭─ (.+?) ─", whole, re.MULTILINE)) == {*panels, "Advanced"}
    assert len(short.splitlines()) <= 80
    assert "--help-all" in short
    options = [set(re.findall(r"^│ (--[\w-]+)", shown, re.MULTILINE)) for shown in (short, whole)]
    assert len(options[0]) <= 17
    assert options[0] < options[1]


def test_list_of_commands_is_one_screen() -> None:
    """With a last command of one line: where this process finds no kdoctor, its path is as long as that of Python."""
    commands, _, last = kdoctor_here("--help").stdout.partition("Start with:")
    assert len(commands.splitlines()) <= 28
    assert last.splitlines()[0].endswith(("check", "check --checklist cpu-smoke"))  # not wrapped, to be pasted
