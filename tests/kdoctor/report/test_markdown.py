from __future__ import annotations

from dataclasses import replace

from markdown_it import MarkdownIt
from markdown_it.token import Token

from helpers.reports import LONG_COMMAND, MARKUP_COMMAND, cpu_report, failure, finding, gpu_report, with_text
from kdoctor.engine.report import Report
from kdoctor.model import Action, Remedy
from kdoctor.report.formats import render


def tokens(report: Report) -> list[Token]:
    return MarkdownIt("commonmark").enable("table").parse(render(report, "markdown"))


def fences(report: Report) -> list[str]:
    return [token.content for token in tokens(report) if token.type == "fence"]


def shown(report: Report) -> str:
    """What a reader sees of the text outside of fences."""
    inline = [token for token in tokens(report) if token.type == "inline"]
    return "\n".join("".join(child.content for child in token.children or []) for token in inline)


def rows(report: Report, table: int = 0) -> list[list[str]]:
    """The rows of one of its tables, without the head."""
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


def test_the_table_has_a_row_for_each_check_in_order_of_family() -> None:
    assert [(row[0], row[1]) for row in rows(gpu_report())] == [
        ("FAIL", "versions.driver-for-cuda"),
        ("FAIL", "gpu.visible-to-driver"),
        ("SKIP", "gpu.replicas-match"),
        ("SKIP", "topology.pcie-width"),
        ("UNKNOWN", "host.shared-memory"),
    ]


def test_the_drift_is_a_table_of_its_own() -> None:
    assert rows(gpu_report(), table=1) == [
        ["driver.version", "580.105.08", "575.57.08", "versions.driver-for-cuda, gpu.visible-to-driver"],
        ["environment.NCCL_DEBUG", "nothing", "INFO", "-"],
        ["packages.h5py", "3.14.0", "nothing", "-"],
    ]


def test_a_pipe_does_not_break_the_table() -> None:
    (row,) = [row for row in rows(gpu_report()) if row[1] == "versions.driver-for-cuda"]
    assert len(row) == 4
    assert row[3].endswith("supports up to 12.0 | see [docs]")


def test_commands_stand_in_fences_as_they_are() -> None:
    assert f"{LONG_COMMAND}\n{MARKUP_COMMAND}\n" in fences(gpu_report())
    assert "python -m pip install 'tensorflow==2.20.0'\n" in fences(gpu_report())


def test_a_command_with_backticks_and_lines_stays_whole() -> None:
    command = "cat <<'E'\n```\n\n  x\nE\necho `date` ````"
    remedy = Remedy(summary="Do it.", action=Action.CONFIGURE, commands=(command,))
    report = replace(gpu_report(), results=(failure("gpu.free", finding(remedy=remedy)),), decisions=())
    assert fences(report) == [command + "\n"]


def test_any_text_is_shown_as_it_is() -> None:
    text = "1. <b>x</b> | `code` *a* _b_ [l](u) # h ~~s~~ \\ &amp; ![i](j) $m$"
    assert shown(with_text(cpu_report(), text)).count(text) >= 8


def test_failures_are_complete() -> None:
    text = shown(gpu_report())
    for part in (
        "Observed: on the PCI bus, but the driver does not list it",
        "Expected: listed by the driver",
        "Fix (reboot): Look for Xid messages of this GPU, then restart the machine.",
        "Rollback: There is no way back: a reboot ends whatever runs on the other GPUs",
        "Why: A job that starts without it fails late, or trains wrongly without a word.",
        "Not judged: 0000:80:00.0: sysfs gave no class",
        "waived by ml-platform until 2030-12-31",
        "Roll back at once: versions.driver-for-cuda",
        "Why: at_once: versions.* (versions.driver-for-cuda)",
        "Decides: the owner of the machine, within 30 minutes",
        "Step 1: Install tensorflow 2.20.0 again.",
        "Step 2: Run kdoctor check again.",
        "topology.pairs (GPU 0 - GPU 1), until 2030-12-31, by ml-platform",
        "Recorded 2029-12-24T06:00:00+00:00 in ci/gpu-node.lock.yaml.",
        "Not compared: topology: NVML hung",
    ):
        assert part in text


def test_scenarios_show_expected_and_measured() -> None:
    text = shown(cpu_report())
    assert "smoke.baseline (baseline). Expected: Two replicas train" in text
    assert "weights: 10 of 10 mirrored; 1.2e-07 from one device, limit 1e-05" in text


def test_it_is_deterministic() -> None:
    assert render(gpu_report(), "markdown") == render(gpu_report(), "markdown")


def test_an_interruption_is_told() -> None:
    assert "The run was interrupted" in shown(replace(cpu_report(), interrupted=True))


def test_a_healthy_condition_that_does_not_hold_is_not_told_as_if_it_did() -> None:
    text = render(cpu_report(results=(failure("gpu.free"),)), "markdown")
    _, _, failures = text.partition("### Failures")
    assert f"Not so: {failure('gpu.free').title}" in failures.replace("\\", "")
