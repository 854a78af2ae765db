"""The JSON Schema of ``kdoctor history export``."""

from typing import Any

from kdoctor.report.json import report_schema


def export_schema() -> dict[str, Any]:
    """The schema of one line: a report as the kdoctor of its time wrote it, so newer keys may be missing."""
    schema = report_schema()
    parts = {name: {key: part[key] for key in part if key != "required"} for name, part in schema["$defs"].items()}
    run = {
        "run": {"type": "integer", "description": "Number of the run."},
        "host": {"type": "string"},
        "scope": {"type": "string", "description": "The options that narrowed the run."},
    }
    return {
        **schema,
        "title": "a line of kdoctor history export",
        "$defs": parts,
        "properties": {**run, **schema["properties"]},
        "required": [*run, "schema", "kdoctor", "verdict", "exit_code", "checklist", "started_at", "results"],
    }
