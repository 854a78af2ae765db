"""A diagnosis as one HTML file."""

from kdoctor.report.html.templates import templates_of
from kdoctor.text.canvas import Canvas
from kdoctor_diagnose.model import Diagnosis
from kdoctor_diagnose.report.sections import fields, heading, notes, own_fields, place, read

_TEMPLATES = templates_of("kdoctor_diagnose.report")


def render_html(diagnosis: Diagnosis, canvas: Canvas) -> str:
    """The diagnosis as one HTML file without scripts. Its policy forbids every request."""
    return _TEMPLATES.get_template("diagnosis.html.j2").render(
        diagnosis=diagnosis,
        heading=heading(diagnosis),
        read=read(diagnosis),
        causes=[(cause, list(fields(cause))) for cause in diagnosis.causes],
        own=list(own_fields(diagnosis.own)) if diagnosis.own else [],
        lines=[(place(line), line.text) for line in diagnosis.lines],
        notes=list(notes(diagnosis)),
        verdict={"cause": "error", "no-failure": "pass"}.get(diagnosis.conclusion, "unknown"),
    )
