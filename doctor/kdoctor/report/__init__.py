"""Renderers: one output format a file. Each is a pure function of the report; none decides anything."""

from kdoctor.report.canvas import PLAIN, Canvas, canvas_for
from kdoctor.report.render import FORMATS, Renderer, render, report_schema

__all__ = ["FORMATS", "PLAIN", "Canvas", "Renderer", "canvas_for", "render", "report_schema"]
