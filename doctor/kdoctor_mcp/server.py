"""``kdoctor mcp``: a Model Context Protocol server for editors and agents.

Each tool is a command of kdoctor with ``--format json``, so that its result is the same document. No tool trains,
writes a file, or runs an interpreter or plugin that the client names: options are given as ``--name=value``, and paths
after ``--``.

Annotations are not strings here: the SDK takes the parameters' types from them.
"""

import functools
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import kdoctor
from kdoctor.cli.captured import document_of, text_of
from kdoctor.commands.packages import install_extra
from kdoctor.errors import UsageError
from kdoctor.matrix.json import MatrixAnswer
from kdoctor.plugins.installed import load, offers
from kdoctor.report.json import ReportDocument
from kdoctor.topology.json import Topology
from kdoctor.version import __version__

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

_LONGEST_TEXT = 65_536
"""The server answers nothing else meanwhile, and a message is searched for each known failure."""
_VERSION = re.compile(r"3\.\d{1,2}")


def mcp() -> None:
    """Serve the commands that only read to editors and agents (Model Context Protocol).

    The tools are check without trainings, explain, matrix, topology, and those of plugins such as diagnose and lint,
    over stdio. The command needs the extra mcp.
    """
    if sys.stdin is None:
        raise UsageError("kdoctor mcp reads requests from stdin, which is closed")
    server().run("stdio")


def server() -> "MCPServer":
    """The server with its tools.

    Raises:
        UsageError: the extra is not installed.
    """
    try:
        from mcp.server.mcpserver import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
        from mcp.types import ToolAnnotations
    except ImportError as error:
        hint = f"Install it: {install_extra('mcp')}"
        raise UsageError(f"kdoctor mcp needs the extra mcp: {error}", hint=hint) from error
    made = MCPServer("kdoctor", instructions=(kdoctor.__doc__ or "").strip(), version=__version__, log_level="WARNING")
    reads = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
    for tool in (check, explain, matrix, topology, *(load(entry) for entry in offers("tools"))):
        made.add_tool(_telling(tool, ToolError), annotations=reads)
    return made


def _telling(tool: Callable[..., Any], told: type[Exception]) -> Callable[..., Any]:
    """The tool, whose errors of use reach the client. The text of any other exception stays on the server.

    It runs in the main thread, where signals can be handled: the SDK runs functions that are not coroutines in others.
    """

    @functools.wraps(tool)
    async def telling(*given: Any, **named: Any) -> Any:
        try:
            return tool(*given, **named)
        except UsageError as error:
            raise told(str(error)) from error

    return telling


def check(checklist: str = "multi-gpu-keras", select: list[str] | None = None) -> ReportDocument:
    """Check this machine and its Python environment without training: can a multi-GPU Keras job start here?

    Args:
        checklist: the name of a shipped checklist (multi-gpu-keras, cpu-smoke, ...), or the path of a checklist.
        select: only these checks or families, such as gpu or versions.known-bad.
    """
    chosen = [f"--select={name}" for name in select or ()]
    return document_of(
        ReportDocument, "check", "--no-smoke", "--no-history", f"--checklist={checklist}", *chosen, "--format=json"
    )


def explain(name: str) -> str:
    """Explain a check, a lint rule, a known failure or an error message: cause, fix and sources.

    Args:
        name: an id such as gpu.free, KD101 or nan_loss, or the text of an error message.
    """
    if len(name) > _LONGEST_TEXT:
        raise UsageError(f"name: expected at most {_LONGEST_TEXT} characters; write the text to a file and diagnose it")
    if name == "-":
        raise UsageError("stdin is not a text here: give the text")
    return text_of("explain", "--", name)


def matrix(
    tensorflow: str | None = None, driver: str | None = None, gpu: list[str] | None = None, python: str | None = None
) -> MatrixAnswer:
    """List the TensorFlow releases that a machine can run, or what one release needs.

    Args:
        tensorflow: a release whose requirements to show, such as 2.19.
        driver: version of the NVIDIA driver, such as 535.161.08. This machine's by default.
        gpu: models or compute capabilities, such as A100 or 8.0. This machine's by default.
        python: a Python version, such as 3.11.
    """
    if python is not None and not _VERSION.fullmatch(python):
        raise UsageError(f"python: expected a version such as 3.11, found {python!r}")
    given = (("tensorflow", tensorflow), ("driver", driver), ("python", python))
    options = [f"--{name}={value}" for name, value in given if value is not None]
    return document_of(MatrixAnswer, "matrix", *options, *(f"--gpu={one}" for one in gpu or ()), "--format=json")


def topology(replicas: int | None = None) -> Topology:
    """Show how the GPUs of this machine are connected, and which of them to use for a number of replicas.

    Args:
        replicas: the number of replicas. Without it: 2, 4, 8, ... and all GPUs.
    """
    wanted = [f"--replicas={replicas}"] if replicas is not None else []
    return document_of(Topology, "topology", *wanted, "--format=json")
