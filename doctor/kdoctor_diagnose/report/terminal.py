"""A diagnosis for the terminal: one screen."""

from kdoctor.engine.report import Mark
from kdoctor.report.sections import Field
from kdoctor.report.terminal.page import STYLES, Page
from kdoctor.text.canvas import Canvas
from kdoctor_diagnose.model import Diagnosis
from kdoctor_diagnose.report.sections import fields, heading, notes, own_fields, place, read
from kdoctor_diagnose.tracebacks import LOG_PREFIX

_MARKS = {
    "cause": Mark.ERROR, "consequence": Mark.WARNING, "not-recognised": Mark.UNKNOWN, "not-read": Mark.UNKNOWN,
    "no-end": Mark.UNKNOWN, "no-failure": Mark.PASS,
}  # fmt: skip
_QUOTED = 2
"""Lines of a quotation."""
_LONG = 4
_PLACE = 30
"""Characters of a place before a message; the end of the path and the line say most."""


def render_terminal(diagnosis: Diagnosis, canvas: Canvas) -> str:
    """The cause, where it shows, and what to do; ``-v`` adds sources and everything else."""
    page = Page(canvas)
    mark = Mark.WARNING if diagnosis.conclusion == "no-failure" and diagnosis.also else _MARKS[diagnosis.conclusion]
    mark = Mark.ERROR if diagnosis.own else mark
    page.paragraph(heading(diagnosis), lead=f"{page.sign(mark)} ", lead_style=STYLES[mark], style="bold")
    page.line(f"  {read(diagnosis)}", "dim")
    first = diagnosis.first
    if first is not None:
        page.blank()
        if diagnosis.conclusion == "consequence":
            page.field(Field(label="First of them", text=first.symptom), indent=2)
        for field in fields(first):
            if field.detail <= canvas.verbosity:
                page.field(field, indent=2, most=_QUOTED if field.label == "Text" else _LONG)
    if diagnosis.own is not None:
        page.blank()
        for field in own_fields(diagnosis.own):
            page.field(field, indent=2)
    own = diagnosis.own
    for line in [line for line in diagnosis.lines[1 if own else 0 :] if not (own and line.text in own.text)]:
        page.blank() if line is diagnosis.lines[0] else None
        where = place(line)
        where = f"...{where[-_PLACE:]}" if len(where) > _PLACE else where  # a path does not displace the message
        text = LOG_PREFIX.sub("... ", line.text)
        page.paragraph(text, indent=2, lead=f"{where}  ", lead_style="dim", hang=4, most=_QUOTED)
    rest = list(notes(diagnosis))
    if rest:
        page.blank()
    for field in rest:
        page.field(field, indent=2, most=_QUOTED + canvas.verbosity * 20)
    return page.text()
