import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from syrupy.assertion import SnapshotAssertion

from helpers.reports import complete, cpu_report, failure, finding, gpu_report, result, with_text
from kdoctor.engine.report import Report
from kdoctor.model import Remedy, Status
from kdoctor.report.formats import render

CHECKS = 2
"""The table of checks in a report with drift, counted from the families' one."""
SKIPPED = [result(f"gpu.x{number}", Status.SKIP, reason="no GPUs expected") for number in range(9)]
REPORTS = {
    "gpu": gpu_report(),
    "cpu": cpu_report(interrupted=True),
    "skipped": cpu_report(results=(failure("gpu.free"), *SKIPPED)),  # one row
}


@pytest.mark.parametrize("name", REPORTS)
def test_screen(name: str, screen: SnapshotAssertion) -> None:
    assert render(REPORTS[name], "markdown") == screen


def tokens(report: Report) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(render(report, "markdown"))


def fences(report: Report) -> list[str]:
    return [token.content for token in tokens(report) if token.type == "fence"]


def shown(report: Report) -> str:
    """The visible text outside code blocks."""
    inline = [token for token in tokens(report) if token.type == "inline"]
    return "\n".join("".join(child.content for child in token.children or []) for token in inline)


def rows(report: Report, table: int = 0) -> list[list[str]]:
    """The rows of a table, without its header."""
    found: list[list[str]] = []
    cell = False
    ends = [place for place, token in enumerate(tokens(report)) if token.type == "table_close"]
    for token in tokens(report)[ends[table - 1] if table else 0 : ends[table]]:
        if token.type == "tr_open":
            found.append([])
        cell = token.type in ("td_open", "th_open") or (cell and token.type == "inline")
        if cell and token.type == "inline":
            found[-1].append("".join(child.content for child in token.children or []))
            cell = False
    return found[1:]


def test_pipe_does_not_break_the_table() -> None:
    (row,) = [row for row in rows(gpu_report(), CHECKS) if row[1] == "versions.driver-for-cuda"]
    assert len(row) == 4
    assert row[3].endswith("supports up to 12.0 | see [docs]")


def test_command_with_backticks_and_lines_stays_whole() -> None:
    command = "cat <<'E'\n```\n\n  x\nE\necho `date` ````"
    remedy = Remedy.configure("Do it.", command)
    report = complete(gpu_report(), results=(failure("gpu.free", finding(remedy=remedy)),), decisions=(), drift=None)
    assert fences(report) == [command + "\n"]


def test_odd_text_is_shown_as_it_is() -> None:
    text = "1. <b>x</b> | `code` *a* _b_ [l](u) # h ~~s~~ \\ &amp; ![i](j) $m$"
    assert shown(with_text(cpu_report(), text)).count(text) >= 8
