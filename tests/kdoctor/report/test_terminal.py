from __future__ import annotations

import io
import re
from dataclasses import replace
from datetime import date

import pytest
from rich.cells import cell_len

from helpers.reports import (
    LONG_COMMAND,
    MARKUP_COMMAND,
    SCENARIOS,
    cpu_report,
    failure,
    finding,
    gpu_report,
    result,
    waiver,
    with_text,
)
from kdoctor.engine.report import Drift, JudgedFinding, Report
from kdoctor.model import Status
from kdoctor.report.formats import render
from kdoctor.text.canvas import Canvas, canvas_for

WIDTHS = (40, 60, 80, 120)
REPORTS = {"cpu": cpu_report(), "gpu": gpu_report()}


def terminal(report: Report, **canvas: int | bool) -> str:
    return render(report, "terminal", Canvas(**canvas))  # type: ignore[arg-type]


def flat(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", REPORTS)
def test_lines_fit_the_width_but_for_what_must_stay_whole(name: str, width: int) -> None:
    report = REPORTS[name]
    *body, verdict = terminal(report, width=width).splitlines()
    commands = {
        LONG_COMMAND,
        MARKUP_COMMAND,
        "sudo dmesg | grep -i 'NVRM: Xid'",
        "grep -rn '\\.batch(' --include='*.py' .",
    }
    commands.add("python -m pip install 'tensorflow==2.20.0'")
    for line in body:
        assert cell_len(line) <= width or line.strip() in commands or len(line.split()) <= 2
        assert line == line.rstrip()
    assert verdict.startswith(report.verdict.conclusion.value.upper())


@pytest.mark.parametrize("width", WIDTHS)
def test_commands_stand_whole_on_lines_of_their_own(width: int) -> None:
    lines = [line.strip() for line in terminal(gpu_report(), width=width).splitlines()]
    assert LONG_COMMAND in lines
    assert MARKUP_COMMAND in lines


def test_the_first_line_names_the_interpreter() -> None:
    first = terminal(cpu_report()).splitlines()[0]
    assert first.startswith("Target     /home/ada/job/.venv/bin/python (CPython 3.11.7")


def test_the_last_line_is_the_verdict_with_counts_and_time() -> None:
    assert terminal(gpu_report()).splitlines()[-1] == (
        "FAIL in 3 min 12 s: 0 passed, 2 failed, 2 skipped, 1 unknown; "
        "gpu.visible-to-driver, versions.driver-for-cuda failed"
    )


def test_a_passed_check_shows_its_evidence() -> None:
    assert "versions.tensorflow-installed: tensorflow: 2.21.0" in terminal(cpu_report())


def test_every_check_and_every_status_is_named_in_words() -> None:
    text = terminal(cpu_report())
    for item in cpu_report().results:
        assert item.id in text
    for word in ("PASS", "FAIL", "SKIP", "UNKNOWN"):
        assert f"  {word}" in text


def test_families_stand_in_their_order_whatever_the_checklists() -> None:
    report = replace(cpu_report(), results=tuple(reversed(cpu_report().results)))
    lines = terminal(report).splitlines()
    order = [lines.index(heading) for heading in ("Versions", "GPUs", "Topology", "Host", "Smoke trainings")]
    assert order == sorted(order)


def test_neighbours_skipped_for_one_reason_are_told_together() -> None:
    text = flat(terminal(cpu_report()))
    assert "SKIP 3 checks: the checklist expects no GPUs gpu.count-expected, gpu.same-model, gpu.free" in text


def test_an_unknown_tells_its_reason_and_that_it_is_accepted() -> None:
    text = flat(terminal(cpu_report()))
    assert "its size cannot be read: Permission denied (accepted: the sandbox hides it)" in text


def test_failures_come_after_the_checklist_and_are_complete() -> None:
    text = terminal(gpu_report())
    _, _, failures = text.partition("\nFailures\n")
    told = flat(failures)
    for judged in (judged for item in gpu_report().results for judged in item.findings if judged.counts):
        for part in (
            f"Subject {judged.finding.subject}",
            f"Observed {judged.finding.observed}",
            f"Expected {judged.finding.expected}",
            f"Fix {judged.finding.remedy.summary}",
            *judged.finding.remedy.commands,
            *judged.finding.rollback.commands,
        ):
            assert part in told
    assert "Why A job that starts without it fails late" in told
    assert "Rollback There is no way back: a reboot ends" in told
    assert "Unjudged 0000:80:00.0: sysfs gave no class" in told
    assert "Versions" not in failures


def test_the_gravest_failure_stands_last() -> None:
    mild = failure("host.shared-memory", severity=cpu_report().results[-1].severity)
    text = terminal(replace(gpu_report(), results=(*gpu_report().results, mild)))
    assert text.index("  host.shared-memory (warning)") < text.index("  gpu.visible-to-driver (error)")


def test_findings_with_one_way_out_share_it() -> None:
    text = terminal(gpu_report())
    assert text.count("sudo systemctl reboot") == 1
    assert text.count("Subject   GPU") == 3


def test_a_waived_finding_stays_visible() -> None:
    _, _, rest = terminal(gpu_report()).partition("\nWaived\n")
    assert "topology.pcie-width (error)" in rest
    assert "Observed  8 lanes" in rest
    assert "until 2030-12-31, by ml-platform: the riser card is replaced in March" in flat(rest)


def test_an_expired_waiver_is_told_with_its_failure() -> None:
    judged = JudgedFinding(finding=finding(), waiver=waiver("gpu.free", expires=date(2020, 1, 1)), expired=True)
    text = terminal(replace(gpu_report(), results=(failure("gpu.free", findings=(judged,)),)))
    assert "Waiver    expired on 2020-01-01 (ml-platform)" in text
    assert "\nWaived\n" not in text


def test_scenarios_show_what_was_expected_and_what_was_measured() -> None:
    text = flat(terminal(cpu_report()))
    for note in SCENARIOS:
        assert f"{note.id} ({note.kind}) Expected {note.expect}" in text
    assert "- weights: 10 of 10 mirrored; 1.2e-07 from one device, limit 1e-05" in text


def test_decisions_name_the_checks_the_criterion_who_decides_and_the_steps() -> None:
    text = terminal(gpu_report(), width=120)
    _, _, block = text.partition("Decided in advance\n")
    assert block.splitlines()[:7] == [
        "  Roll back at once: versions.driver-for-cuda",
        "    Why       at_once: versions.* (versions.driver-for-cuda)",
        "    Decides   the owner of the machine, within 30 minutes",
        "    Step 1    Install tensorflow 2.20.0 again.",
        f"                {LONG_COMMAND}",
        f"                {MARKUP_COMMAND}",
        "    Step 2    Run kdoctor check again.",
    ]


def test_the_drift_is_a_section_of_its_own() -> None:
    text = terminal(gpu_report(), width=120)
    _, _, block = text.partition("Changed since the last green run\n")
    assert block.splitlines()[:6] == [
        "  recorded 2029-12-24T06:00:00+00:00 in ci/gpu-node.lock.yaml",
        "  - driver.version: 580.105.08 -> 575.57.08",
        "      may explain versions.driver-for-cuda, gpu.visible-to-driver",
        "  - environment.NCCL_DEBUG: nothing -> INFO",
        "  - packages.h5py: 3.14.0 -> nothing",
        "  - not compared: topology: NVML hung",
    ]


def test_no_drift_is_no_section() -> None:
    same = replace(gpu_report(), drift=Drift(lock="x", recorded="y"))
    assert "Changed since" not in terminal(same)


def test_a_waiver_without_a_use_is_told() -> None:
    text = terminal(gpu_report(), width=120)
    assert "Waivers that match nothing any more\n  - topology.pairs (GPU 0 - GPU 1), until 2030" in text


def test_an_interruption_is_told() -> None:
    assert "The run was interrupted" in terminal(replace(cpu_report(), interrupted=True))


def test_an_empty_report_is_readable() -> None:
    assert terminal(replace(gpu_report(), results=(), decisions=())).endswith("versions.driver-for-cuda failed\n")


def test_plain_text_has_no_escape_codes_and_colours_change_nothing_else() -> None:
    plain = terminal(gpu_report())
    coloured = terminal(gpu_report(), colour=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_the_environment_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = terminal(gpu_report())
    for name, value in (("COLUMNS", "20"), ("FORCE_COLOR", "1"), ("TERM", "dumb"), ("TTY_COMPATIBLE", "1")):
        monkeypatch.setenv(name, value)
    assert terminal(gpu_report()) == before


def test_codes_of_other_programs_do_not_reach_the_terminal() -> None:
    text = terminal(with_text(cpu_report(), "a\x1b[31mred\x1b]0;title\x07 \r\x9b2J\udcff"))
    assert "a\\x1b" not in text
    assert "ared\\x1b]0;title\\x07 \\x0d\\x9b2J\\udcff" in text


def test_markup_like_text_is_not_eaten() -> None:
    assert "[/bold] :smile: [red]x" in terminal(with_text(cpu_report(), "[/bold] :smile: [red]x"))


def test_python_stacks_keep_their_lines() -> None:
    stacks = 'Thread 0x1:\n  File "a.py", line 1 in fit\n  File "b.py", line 2 in <module>'
    report = replace(gpu_report(), results=(failure("gpu.free", finding(observed=stacks)),))
    text = terminal(report)
    assert '    Observed  Thread 0x1:\n                File "a.py", line 1 in fit\n' in text


def test_a_stream_without_unicode_gets_escapes() -> None:
    text = terminal(with_text(cpu_report(), "Grüße"), unicode=False)
    assert text.isascii()
    assert "Gr\\xfc\\xdfe" in text


class Stream(io.StringIO):
    def __init__(self, *, terminal: bool, encoding: str = "utf-8") -> None:
        super().__init__()
        self._terminal, self._encoding = terminal, encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return self._terminal


@pytest.mark.parametrize(
    ("stream", "environ", "expected"),
    [
        (Stream(terminal=False), {}, Canvas(width=80)),
        (Stream(terminal=False), {"COLUMNS": "100"}, Canvas(width=100)),
        (Stream(terminal=False), {"COLUMNS": "many"}, Canvas(width=80)),
        (Stream(terminal=False), {"COLUMNS": "1"}, Canvas(width=40)),
        (Stream(terminal=False), {"COLUMNS": "9" * 5000}, Canvas(width=120)),
        (Stream(terminal=True), {"COLUMNS": "90"}, Canvas(width=90, colour=True)),
        (Stream(terminal=True), {}, Canvas(width=80, colour=True)),
        (Stream(terminal=True), {"NO_COLOR": "1"}, Canvas(width=80)),
        (Stream(terminal=True), {"TERM": "dumb"}, Canvas(width=80)),
        (Stream(terminal=False, encoding="ANSI_X3.4-1968"), {}, Canvas(width=80, unicode=False)),
    ],
)
def test_the_canvas_of_a_stream(stream: Stream, environ: dict[str, str], expected: Canvas) -> None:
    assert canvas_for(stream, environ) == expected


def test_a_skipped_smoke_check_tells_its_reason() -> None:
    skipped = result(
        "smoke.baseline", Status.SKIP, reason="trainings were left out (--no-smoke)", scenario="smoke.baseline"
    )
    text = flat(terminal(replace(cpu_report(), results=(skipped,))))
    assert "smoke.baseline: trainings were left out (--no-smoke)" in text
