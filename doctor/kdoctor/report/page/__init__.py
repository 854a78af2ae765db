"""The HTML report: one file that needs nothing else, without scripts, light and dark, on a phone and on paper."""

from kdoctor.report.page.write import render_html

__all__ = ["render_html"]
