"""``kdoctor schema``."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from kdoctor.cli.options import PluginOption
from kdoctor.cli.streams import show


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
    import json

    from kdoctor.catalog import load_catalog

    if document == "report":
        from kdoctor.report import report_schema

        text = report_schema()
    elif document == "checklist":
        from kdoctor.checklist import json_schema as checklist_schema

        text = checklist_schema()
    elif document == "snapshot":
        from kdoctor.snapshot import json_schema as snapshot_schema

        text = snapshot_schema(load_catalog(plugin or ()).fact_groups)
    else:
        from kdoctor.documents import document_schema

        text = document_schema(document)
    show(json.dumps(text, indent=2, ensure_ascii=False) + "\n")
