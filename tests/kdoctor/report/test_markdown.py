from dataclasses import replace

from markdown_it import MarkdownIt
from markdown_it.token import Token
from syrupy.assertion import SnapshotAssertion

from helpers.cases import cases
from helpers.reports import (
    LONG_COMMAND,
    MARKUP_COMMAND,
    complete,
    cpu_report,
    failure,
    finding,
    gpu_report,
    result,
    with_text,
)
from kdoctor.engine.report import Report
from kdoctor.model import Remedy, Status
from kdoctor.report.formats import render
from kdoctor.text.markdown import escape

DRIFT, CHECKS = 1, 2
"""The tables of a report with drift, counted from the families' one."""


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


def test_table_has_a_row_for_each_check_in_order_of_family() -> None:
    assert [(row[0], row[1]) for row in rows(gpu_report(), CHECKS)] == [
        ("FAIL", "versions.driver-for-cuda"),
        ("FAIL", "gpu.visible-to-driver"),
        ("SKIP", "gpu.replicas-match"),
        ("SKIP", "topology.pcie-width"),
        ("UNKNOWN", "host.shared-memory"),
    ]


def test_checks_skipped_for_one_reason_share_a_row() -> None:
    skipped = [result(f"gpu.x{number}", Status.SKIP, reason="no GPUs expected") for number in range(9)]
    report = complete(gpu_report(), results=(*gpu_report().results, *skipped))
    assert [row[2] for row in rows(report, CHECKS)].count("9 checks: no GPUs expected") == 1
    assert "gpu.x3" not in shown(report)


def test_drift_is_a_table() -> None:
    assert rows(gpu_report(), table=DRIFT) == [
        ["driver.version", "580.105.08", "575.57.08", "versions.driver-for-cuda, gpu.visible-to-driver"],
        ["environment.NCCL_DEBUG", "absent", "INFO", "-"],
        ["packages.h5py", "3.14.0", "absent", "-"],
    ]


def test_pipe_does_not_break_the_table() -> None:
    (row,) = [row for row in rows(gpu_report(), CHECKS) if row[1] == "versions.driver-for-cuda"]
    assert len(row) == 4
    assert row[3].endswith("supports up to 12.0 | see [docs]")


def test_commands_are_fenced_unchanged() -> None:
    assert f"{LONG_COMMAND}\n{MARKUP_COMMAND}\n" in fences(gpu_report())
    assert "python -m pip install 'tensorflow==2.20.0'\n" in fences(gpu_report())


def test_command_with_backticks_and_lines_stays_whole() -> None:
    command = "cat <<'E'\n```\n\n  x\nE\necho `date` ````"
    remedy = Remedy.configure("Do it.", command)
    report = complete(gpu_report(), results=(failure("gpu.free", finding(remedy=remedy)),), decisions=(), drift=None)
    assert fences(report) == [command + "\n"]


def test_odd_text_is_shown_as_it_is() -> None:
    text = "1. <b>x</b> | `code` *a* _b_ [l](u) # h ~~s~~ \\ &amp; ![i](j) $m$"
    assert shown(with_text(cpu_report(), text)).count(text) >= 8


def test_problems_are_complete() -> None:
    text = shown(gpu_report())
    for item in gpu_report().results:
        for judged in item.findings:
            assert judged.finding.observed in text
            if judged.counts:
                assert f"Expected: {judged.finding.expected}" in text
                assert f"Fix: {judged.finding.remedy.summary}" in text
                assert f"To undo: {judged.finding.rollback.why}" in text
                assert f"Why it matters: {item.why}" in text
                assert f"Check: {item.id} (error): {item.title}" in text
    assert "Not judged: 0000:80:00.0: " in text


def test_causes_come_before_the_tables_which_are_folded() -> None:
    text = render(gpu_report(), "markdown")
    order = [text.index(part) for part in ("### ✗ GPU 3, 6", "### Changes since", "<details>", "| Status")]
    assert order == sorted(order)


def test_screen(screen: SnapshotAssertion) -> None:
    assert render(gpu_report(), "markdown") == screen


def test_scenario_shows_what_was_expected_and_measured() -> None:
    text = shown(cpu_report())
    assert "smoke.baseline (baseline). Expected: Two replicas train" in text
    assert "weights: 10 of 10 mirrored; 1.2e-07 from one device, limit 1e-05" in text


def test_interruption_is_shown() -> None:
    interrupted = shown(replace(cpu_report(), interrupted=True)).splitlines()
    (added,) = set(interrupted) - set(shown(cpu_report()).splitlines())
    assert "interrupted" in added


def test_failed_check_leads_with_its_finding() -> None:
    report = cpu_report(results=(failure("gpu.free"),))
    text = shown(report)
    assert text.index("GPU 3 (0000:40:00.0): on the PCI bus") < text.index(report.results[0].title)


@cases(
    ("1. one", "1\\. one"),
    ("2030-01-02", "2030-01-02"),
    ("2.20.0", "2.20.0"),
    ("- one", "\\- one"),
    ("===", "\\==="),
    ("a - b", "a - b"),
)
def test_only_what_would_start_a_list_or_a_heading_is_escaped(text: str, escaped: str) -> None:
    assert escape(text) == escaped
