"""``kdoctor schema``."""

from __future__ import annotations

import json
from typing import Annotated, Literal

import typer

from kdoctor.checklist.schema import ChecklistDocument
from kdoctor.cli.options import PluginOption
from kdoctor.cli.stderr import show
from kdoctor.documents import document_schema
from kdoctor.engine.catalog import load_catalog
from kdoctor.report.formats import report_schema
from kdoctor.snapshot.document import json_schema as snapshot_schema


def schema(
    document: Annotated[
        Literal[
            "report", "snapshot", "checklist", "checklist-diff", "rollback", "history", "lint", "matrix", "topology"
        ],
        typer.Argument(metavar="DOCUMENT", help="Which document; history is one line of its export."),
    ],
    *,
    plugin: PluginOption = None,
) -> None:
    """Print the JSON Schema of a document that kdoctor reads or writes."""
    if document == "report":
        text = report_schema()
    elif document == "checklist":
        text = ChecklistDocument.json_schema()
    elif document == "snapshot":
        text = snapshot_schema(load_catalog(plugin or ()).fact_groups)
    else:
        text = document_schema(document)
    show(json.dumps(text, indent=2, ensure_ascii=False) + "\n")
