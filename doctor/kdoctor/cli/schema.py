"""``kdoctor schema``."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pkgutil import resolve_name
from typing import Annotated, Any

import typer

from kdoctor.cli.completion import beginning_with
from kdoctor.cli.options import PluginOption
from kdoctor.cli.stderr import show
from kdoctor.errors import one_of
from kdoctor.plugins.catalog import load_catalog

DOCUMENTS: Mapping[str, str] = {
    "report": "kdoctor.report.json:report_schema",
    "snapshot": "kdoctor.snapshot.document:json_schema",
    "checklist": "kdoctor.checklist.schema:ChecklistDocument",
    "checklist-diff": "kdoctor.diff.model:ChecklistDiff",
    "rollback": "kdoctor.rollback.document:RollbackPlan",
    "history": "kdoctor.history.schema:export_schema",
    "list": "kdoctor.engine.listing:Listing",
    "lint": "kdoctor_lint.report.json:Lint",
    "matrix": "kdoctor.matrix.json:MatrixAnswer",
    "topology": "kdoctor.topology.json:Topology",
    "diagnosis": "kdoctor.diagnose.model:Diagnosis",
    "fleet": "kdoctor.fleet.document:FleetDocument",
    "fleet-run": "kdoctor.fleet.run_record:FleetRun",
    "fleet-pairs": "kdoctor.fleet.pairs.record:FleetPairs",
    "fleet-history": "kdoctor.fleet.history:FleetHistory",
    "fleet-diff": "kdoctor.fleet.diff:FleetDiff",
}
"""Name of a document to its model, or to a function that returns its schema."""


def document_schema(name: str, plugins: list[str] | None = None) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of a document in ``DOCUMENTS``.

    Args:
        name: the document.
        plugins: as for ``load_catalog``; probes of plugins extend the snapshot.
    """
    found = resolve_name(DOCUMENTS[name])
    describe: Callable[..., dict[str, Any]] = getattr(found, "json_schema", found)
    return describe(load_catalog(plugins or ()).fact_groups) if name == "snapshot" else describe()


def _complete(incomplete: str) -> list[str]:
    return beginning_with(incomplete, DOCUMENTS)


def schema(
    document: Annotated[
        str,
        typer.Argument(
            autocompletion=_complete,
            metavar="DOCUMENT",
            help=f"One of {', '.join(DOCUMENTS)}. 'history' is a line of its export.",
        ),
    ],
    *,
    plugin: PluginOption = None,
) -> None:
    """Print the JSON Schema of a document that kdoctor reads or writes."""
    name = one_of("DOCUMENT", document, tuple(DOCUMENTS))
    show(json.dumps(document_schema(name, plugin), indent=2, ensure_ascii=False) + "\n", rendered=True)
