"""``kdoctor schema``."""

import json
from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import Annotated, Any

import typer

from kdoctor.catalog.load import load_catalog
from kdoctor.cli.completion import beginning_with
from kdoctor.cli.options import PluginOption
from kdoctor.cli.stderr import show
from kdoctor.errors import one_of
from kdoctor.plugins.installed import load, named

DOCUMENTS: Mapping[str, str] = {
    "report": "kdoctor.report.json:report_schema",
    "snapshot": "kdoctor.snapshot.document:json_schema",
    "checklist": "kdoctor.checklist.schema:ChecklistDocument",
    "checklist-diff": "kdoctor.diff.model:ChecklistDiff",
    "rollback": "kdoctor.rollback.document:RollbackPlan",
    "history": "kdoctor.history.schema:export_schema",
    "list": "kdoctor.engine.listing:Listing",
    "matrix": "kdoctor.matrix.json:MatrixAnswer",
    "topology": "kdoctor.topology.json:Topology",
}
"""Name of a document of kdoctor's own to its model, or to a function that returns its schema."""


def documents() -> tuple[str, ...]:
    """The names of all documents, those of plugins last (entry point ``kdoctor.documents``)."""
    return (*DOCUMENTS, *sorted(named("documents", DOCUMENTS)))


def document_schema(name: str, plugins: list[str] | None = None) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a document that :func:`documents` names.

    Args:
        name: the document.
        plugins: as for ``load_catalog``; probes of plugins extend the snapshot.
    """
    found = resolve_name(DOCUMENTS[name]) if name in DOCUMENTS else load(named("documents")[name])
    describe: Callable[..., dict[str, Any]] = getattr(found, "json_schema", found)
    return describe(load_catalog(plugins or ()).fact_groups) if name == "snapshot" else describe()


def schema(
    document: Annotated[
        str,
        typer.Argument(
            autocompletion=lambda incomplete: beginning_with(incomplete, documents()),
            metavar="DOCUMENT",
            help=f"One of {', '.join(documents())}. 'history' is a line of its export.",
        ),
    ],
    *,
    plugin: PluginOption = None,
) -> None:
    """Print the JSON Schema of a document that kdoctor reads or writes."""
    name = one_of("DOCUMENT", document, documents())
    show(json.dumps(document_schema(name, plugin), indent=2, ensure_ascii=False) + "\n", rendered=True)
