"""The table that a preflight shows in a notebook."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from helpers.reports import LONG_COMMAND, cpu_report, gpu_report, with_text
from kdoctor.api.preflight import Preflight
from kdoctor.engine.report import Report


class Cells(HTMLParser):
    """The texts of each row's cells, with a test that every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")
        self.open += [tag] if tag != "br" else []

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open:
            self.rows[-1][-1] += data


def html_of(report: Report) -> str:
    return Preflight(report)._repr_html_()


def rows(report: Report) -> list[list[str]]:
    return Cells(html_of(report)).rows[1:]


def test_table_has_a_row_for_each_check_failures_first() -> None:
    assert html_of(cpu_report()).startswith("<table")
    words = [mark for mark, *_ in rows(cpu_report())]
    assert words == ["warning", "unknown", "pass", "pass", "pass", "skip", "skip", "skip", "skip"]


def test_failure_shows_finding_expectation_and_fix() -> None:
    row = next(row for row in rows(gpu_report()) if "versions.driver-for-cuda" in row[1])
    assert row[0] == "error"
    assert re.match(r"tensorflow 2\.21\.0: built for CUDA 12\.5.*Expected: a driver of 555 or newer", row[2], re.DOTALL)
    assert LONG_COMMAND in row[2]


def test_other_checks_show_evidence_or_reason() -> None:
    found = {row[1]: row[2] for row in rows(cpu_report())}
    observed = {title: text for title, text in found.items() if "tensorflow-installed" in title or "gpu.free" in title}
    assert sorted(observed.values()) == ["tensorflow: 2.21.0", "the checklist expects no GPUs"]


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '"><img src=x onerror=y>', "a\x1b[31mb"])
def test_odd_text_is_text(text: str) -> None:
    assert not {"script", "img"} & Cells(html_of(with_text(cpu_report(), text))).names
    assert "\x1b" not in html_of(with_text(cpu_report(), text))


def test_text_is_the_terminal_report_without_colours() -> None:
    assert str(Preflight(cpu_report())).startswith("kdoctor ")
    assert "\x1b" not in str(Preflight(cpu_report()))
