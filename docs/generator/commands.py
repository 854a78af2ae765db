"""The command line as a page and as a manual page."""

from collections.abc import Iterator
from typing import Any

from rich.text import Text
from typer.main import get_command
from typer.testing import CliRunner

from kdoctor.catalog.load import Catalog
from kdoctor.cli import app
from kdoctor.version import __version__


def cli_page(_: Catalog) -> str:
    """The help of each command and subcommand."""
    lines = ["# Command line", "", "The output of `--help` for each command, 80 columns wide.", ""]
    for path in _command_paths(get_command(app), ()):
        shown = CliRunner(env={"COLUMNS": "80"}).invoke(app, [*path, "--help"], prog_name="kdoctor").output
        text = "\n".join(line.rstrip() for line in Text.from_ansi(shown).plain.splitlines()).strip("\n")
        lines += [f"## {' '.join(('kdoctor', *path))}", "", "```text", text, "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def _command_paths(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    yield path
    if hasattr(command, "list_commands"):
        context = command.make_context(path[-1] if path else "kdoctor", [], resilient_parsing=True)
        for name in command.list_commands(context):
            _, found, _ = command.resolve_command(context, [name])
            yield from _command_paths(found, (*path, name))


_MAN_HEAD = """\
.TH KDOCTOR 1 "" "kdoctor {version}" "User Commands"
.SH NAME
kdoctor \\- check a machine before a long multi-GPU Keras job
.SH SYNOPSIS
.B kdoctor
.I COMMAND
.RI [ OPTIONS ]
.SH DESCRIPTION
{about}
kdoctor reads the driver, the GPUs, their links and the installed packages, trains small models, and prints what is
wrong with the commands that fix it. It changes nothing on the machine.
.SH COMMANDS
"""
_MAN_TAIL = """\
.SH EXIT STATUS
Of
.BR "kdoctor check" :
0 passed; 1 a check failed; 2 usage error; 3 inconclusive; 4 internal error; 130 interrupted.
.SH ENVIRONMENT
.TP
.B KDOCTOR_HISTORY
The file of the run history.
.TP
.B KDOCTOR_NO_HISTORY
If set, runs are not recorded.
.TP
.B KDOCTOR_MATRIX
A custom version matrix.
.TP
.B KDOCTOR_DEBUG
If set, internal errors show a traceback.
.TP
.BR CUDA_VISIBLE_DEVICES ", " CUDA_DEVICE_ORDER
The GPUs of the job.
.SH EXAMPLES
.nf
kdoctor check
kdoctor check \\-\\-checklist cpu\\-smoke
kdoctor check \\-\\-no\\-smoke && python train.py
python train.py 2>&1 | kdoctor explain \\-
.fi
"""


def man_page() -> str:
    """The manual page, from the commands."""
    root = get_command(app)
    lines = _MAN_HEAD.format(version=__version__, about=_roff(root.help or "")).splitlines()
    for path in _command_paths(root, ()):
        command = _command_at(root, path)
        if path and not hasattr(command, "list_commands"):
            lines += [f".SS {_roff(' '.join(('kdoctor', *path)))}", *_paragraphs(command.help or "")]
            lines += [line for parameter in command.params for line in _man_parameter(parameter)]
            lines += [".PP", _roff(command.epilog or "")]
    return "\n".join([*lines, _MAN_TAIL])


def _man_parameter(parameter: Any) -> Iterator[str]:
    text = getattr(parameter, "help", None) or ""
    if parameter.param_type_name == "argument":
        yield from (".TP", f".I {_roff(parameter.metavar or parameter.name.upper())}", _roff(text))
        return
    value = "" if parameter.is_flag else f" {parameter.metavar or parameter.name.upper()}"
    names = ", ".join(sorted(parameter.opts, key=len))
    yield from (".TP", f".B {_roff(names + value)}", _roff(text.replace("\\[", "[")))


def _command_at(command: Any, path: tuple[str, ...]) -> Any:
    for name in path:
        context = command.make_context(name, [], resilient_parsing=True)
        _, command, _ = command.resolve_command(context, [name])
    return command


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        yield from (".PP", _roff(" ".join(paragraph.split())))


def _roff(text: str) -> str:
    """A text as roff: backslashes and hyphens are literal, and the start of a line is never a request."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped
