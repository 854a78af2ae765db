"""The record of a run over a fleet, next to its reports: which nodes were asked what, and who did not answer."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal, TypeVar

from pydantic import Field, ValidationError

from kdoctor.documents import Document, Part
from kdoctor.errors import UsageError
from kdoctor.inputs import read_bounded
from kdoctor.version import __version__
from kdoctor_fleet.names import MOST_NODES, is_valid

FILE = "fleet-run.json"
NODES = "nodes"
"""The subfolder of the reports."""

Record = TypeVar("Record", bound=Document)


class NodeOutcome(Part):
    """What came of asking a node."""

    reported: bool
    reason: Annotated[str, Field(description="Why it sent no report; empty if it did.")] = ""
    asked_at: Annotated[str, Field(description="By the clock of this machine or of Kubernetes: UTC, ISO 8601.")] = ""
    seconds: float


class FleetRun(Document):
    """A run of ``kdoctor fleet run``. ``--resume`` asks the nodes again that have not reported."""

    schema_: Annotated[Literal["kdoctor/fleet-run/v1"], Field(alias="schema")] = "kdoctor/fleet-run/v1"
    kdoctor: Annotated[str, Field(description="Version of kdoctor.")] = __version__
    engine: str
    engine_options: tuple[str, ...]
    program: Annotated[tuple[str, ...], Field(description="How kdoctor is started on the nodes.")]
    options: Annotated[tuple[str, ...], Field(description="Options of ``kdoctor check``.")]
    nodes: Annotated[tuple[str, ...], Field(max_length=MOST_NODES)]
    started_at: Annotated[str, Field(description="UTC, ISO 8601.")]
    outcomes: Annotated[Mapping[str, NodeOutcome], Field(description="By node. Nodes that were not asked are missing.")]

    def asked_at(self, node: str) -> str:
        """When a node was asked; empty if that was not kept."""
        outcome = self.outcomes.get(node)
        return outcome.asked_at if outcome else ""

    def silent(self, folder: Path) -> dict[str, str]:
        """The nodes without a report, with the reason."""
        return {
            node: (outcome.reason if (outcome := self.outcomes.get(node)) and outcome.reason else "was not asked")
            for node in self.nodes
            if not report_file(folder, node).exists()
        }


def report_file(folder: Path, node: str) -> Path:
    """The file of a node's report. The name is valid, and so is the path."""
    return folder / NODES / f"{node}.json"


def read_run(folder: Path) -> FleetRun | None:
    """The record of a folder; None if it has none.

    Raises:
        UsageError: it is not a record.
    """
    path = folder / FILE
    return read_named(path, FleetRun, lambda run: run.nodes) if path.is_file() else None


def read_named(
    path: Path, kind: type[Record], names: Callable[[Record], Iterable[str]], problem: str = "", hint: str | None = None
) -> Record:
    """A document with names of nodes.

    Args:
        path: the file.
        kind: the class of the document.
        names: the nodes that it names.
        problem: begins the message if it is not such a document.
        hint: how to get one.

    Raises:
        UsageError: it is not such a document, or a name is not one of a node.
    """
    try:
        record = kind.model_validate_json(read_bounded(path))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror or error}", hint=hint) from error
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UsageError(f"{path}: {problem}{where}: {first['msg']}", hint=hint) from error
    wrong = next((name for name in names(record) if not is_valid(name)), None)
    if wrong is not None:
        raise UsageError(f"{path}: {wrong[:80]!r} is not a name of a node")
    return record
