"""A diagnosis as Markdown, for a comment on an issue."""

from collections.abc import Iterator

from kdoctor.report.markdown import markdown_fields
from kdoctor.text.canvas import Canvas
from kdoctor.text.markdown import escape
from kdoctor_diagnose.model import Diagnosis
from kdoctor_diagnose.report.sections import fields, heading, notes, own_fields, place, read


def render_markdown(diagnosis: Diagnosis, canvas: Canvas) -> str:
    """The diagnosis as Markdown."""
    return "\n".join(_lines(diagnosis)) + "\n"


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    yield from (f"## kdoctor: {escape(heading(diagnosis))}", "", escape(read(diagnosis)), "")
    first = diagnosis.first
    if first is not None:
        yield from markdown_fields(field for field in fields(first) if field.label != "Text")
        yield from ("", *_quoted([first.first.text]), "")
    if diagnosis.own is not None:
        yield from (*markdown_fields(own_fields(diagnosis.own)), "")
    if diagnosis.lines:
        yield from (*_quoted([f"{place(line)}  {line.text}" for line in diagnosis.lines]), "")
    yield from markdown_fields(notes(diagnosis))


def _quoted(lines: list[str]) -> Iterator[str]:
    """Lines as code, in a fence that is longer than any run of backticks in them."""
    fence = "`" * max(3, *(line.count("`") + 1 for line in lines))
    yield from (f"{fence}text", *lines, fence)
