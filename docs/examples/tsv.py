"""A report as a table with tabs."""

from kdoctor.engine.report import Report
from kdoctor.text.canvas import Canvas


def render(report: Report, _canvas: Canvas) -> str:
    return "".join(f"{result.id}\t{result.status.value}\n" for result in report.results if not result.left_out)
