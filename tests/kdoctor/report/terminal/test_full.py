import re
from dataclasses import replace
from datetime import date

import pytest
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from helpers.reports import (
    LONG_COMMAND,
    MARKUP_COMMAND,
    complete,
    cpu_report,
    failure,
    finding,
    gpu_report,
    result,
    waiver,
    with_text,
)
from kdoctor.engine.report import Drift, JudgedFinding, Report
from kdoctor.model import Remedy, Severity, Status
from kdoctor.report.formats import render
from kdoctor.text.canvas import Canvas

OTHER = Remedy.configure("Free some memory.")
WIDTHS = (40, 60, 80, 120)
REPORTS = {"cpu": cpu_report(), "gpu": gpu_report()}


def terminal(report: Report, *, verbosity: int = 1, **canvas: int | bool) -> str:
    return render(report, "terminal", Canvas(verbosity=verbosity, **canvas))  # type: ignore[arg-type]


def flat(text: str) -> str:
    return " ".join(text.split())


def section(text: str, heading: str) -> list[str]:
    """The lines of a section, without its heading."""
    _, _, rest = text.partition(f"\n\n{heading}\n")
    lines = rest.splitlines()
    end = next((place for place, line in enumerate(lines) if line and not line.startswith(" ")), len(lines))
    return lines[:end]


@pytest.mark.parametrize("verbosity", [1, 2])
@pytest.mark.parametrize("name", REPORTS)
def test_screen(name: str, verbosity: int, screen: SnapshotAssertion) -> None:
    assert terminal(REPORTS[name], verbosity=verbosity) == screen


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", REPORTS)
def test_lines_fit_the_width_except_commands_and_single_words(name: str, width: int) -> None:
    report = REPORTS[name]
    findings = [judged.finding for item in report.results for judged in item.findings]
    commands = {command for item in findings for command in (*item.remedy.commands, *item.rollback.commands)}
    commands |= {command for step in report.plan for command in step.commands}
    for line in terminal(report, width=width).splitlines():
        assert cell_len(line) <= width or line.strip() in commands or len(line.split()) <= 2
        assert line == line.rstrip()


@pytest.mark.parametrize("width", WIDTHS)
def test_commands_are_whole_lines(width: int) -> None:
    lines = [line.strip() for line in terminal(gpu_report(), width=width).splitlines()]
    assert LONG_COMMAND in lines
    assert MARKUP_COMMAND in lines


def test_first_line_names_the_interpreter() -> None:
    assert re.match(r"Target +/home/ada/job/.venv/bin/python \(CPython 3.11.7", terminal(cpu_report()))


def test_last_lines_are_the_verdict() -> None:
    text = flat(terminal(gpu_report()))
    assert text.endswith(f"NOT READY in 3 min 12 s: {gpu_report().verdict.reason}; 2 problems, 1 unknown, 2 skipped")


def test_passed_check_shows_its_evidence() -> None:
    assert "versions.tensorflow-installed: tensorflow: 2.21.0" in terminal(cpu_report())


def test_every_check_and_every_status_is_named() -> None:
    text = terminal(cpu_report())
    for item in cpu_report().results:
        assert item.id in text
    for word in ("PASS", "WARNING", "SKIP", "UNKNOWN"):
        assert f"  {word} " in text


def test_families_keep_their_order_whatever_the_checklist() -> None:
    report = complete(cpu_report(), results=tuple(reversed(cpu_report().results)))
    lines = terminal(report).splitlines()
    order = [lines.index(heading) for heading in ("Versions", "GPUs", "Topology", "Host", "Training")]
    assert order == sorted(order)


def test_neighbours_skipped_for_the_same_reason_are_one_entry() -> None:
    text = flat(terminal(cpu_report()))
    assert "SKIP 3 checks: the checklist expects no GPUs gpu.count-expected, gpu.same-model, gpu.free" in text


def test_unknown_shows_its_reason_and_why_it_is_accepted() -> None:
    text = flat(terminal(cpu_report()))
    assert "its size cannot be read: Permission denied (accepted: the sandbox hides it)" in text


def test_problems_follow_the_checks_and_are_complete() -> None:
    problems = "\n".join(section(terminal(gpu_report(), verbosity=2), "Problems"))
    for item in gpu_report().results:
        for shown in (judged.finding for judged in item.findings if judged.counts):
            for part in (
                shown.observed,
                f"Expected: {shown.expected}",
                f"Fix: {shown.remedy.summary}",
                f"To undo: {shown.rollback.why}",
                f"Why it matters: {item.why}",
                f"Check: {item.id} ({item.severity.value}): {item.title}",
                *shown.remedy.commands,
                *shown.rollback.commands,
            ):
                assert part in flat(problems)
    assert "Not judged: 0000:80:00.0: " in problems


def test_reasons_and_sources_need_the_second_step_of_verbosity() -> None:
    report = cpu_report(results=(failure("gpu.free", sources=("https://example.org/criterion",)),))
    for text in (report.results[0].why, "https://example.org/criterion"):
        assert text not in flat(terminal(report, verbosity=1))
        assert text in flat(terminal(report, verbosity=2))


@pytest.mark.parametrize(("name", "word"), [("cpu", "WARNING"), ("gpu", "FAIL")])
def test_failed_check_leads_with_its_finding(name: str, word: str) -> None:
    report = REPORTS[name]
    failed = next(item for item in report.results if item.status is Status.FAIL)
    first = failed.findings[0].finding
    text = flat(terminal(report))
    assert f"{word} {first.subject}: {first.observed}"[:40] in text  # the problem above has the rest
    assert text.count(failed.title) == 1  # the label at the end of the problem


def test_worst_problem_is_first() -> None:
    mild = failure("host.shared-memory", finding("mild", remedy=OTHER), severity=Severity.WARNING)
    lines = section(terminal(complete(gpu_report(), results=(mild, *gpu_report().results))), "Problems")
    assert not lines[0].startswith("  mild:")
    assert any(line.startswith("  mild:") for line in lines)


def test_note_is_above_the_check_that_refers_to_it() -> None:
    note = failure("host.shared-memory", finding("mild", remedy=OTHER), severity=Severity.INFO)
    text = terminal(complete(gpu_report(), results=(note, *gpu_report().results)))
    assert 0 < text.index("\nNotes\n") < text.index("host.shared-memory: 1 finding, see above")


def test_findings_with_the_same_fix_share_it() -> None:
    text = terminal(gpu_report())
    assert text.count("sudo systemctl reboot") == 1
    assert "  GPU 3, 6: on" in text


def test_each_expectation_is_shown_under_a_shared_fix() -> None:
    report = complete(
        gpu_report(), results=(failure("gpu.free", finding("A", expected="1"), finding("B", expected="2")),)
    )
    text = terminal(report)
    assert "    Expected: 1\n" in text
    assert "    Expected: 2\n" in text


def test_individual_values_are_listed_under_a_shared_headline() -> None:
    held = [finding(f"GPU {index}", observed=f"{80 + index} of 1980 MHz", brief="held back") for index in range(2)]
    text = terminal(complete(gpu_report(), results=(failure("gpu.clocks", *held),)))
    assert "  GPU 0-1: held back\n" in text
    assert "    Observed: GPU 1: 81 of 1980 MHz\n" in text


def test_problems_for_information_are_notes() -> None:
    text = terminal(complete(gpu_report(), results=(failure("gpu.power-limit", severity=Severity.INFO),)))
    assert section(text, "Problems") == []
    assert any("sudo systemctl reboot" in line for line in section(text, "Notes"))


def test_waived_finding_stays_visible() -> None:
    rest = flat("\n".join(section(terminal(gpu_report()), "Waived")))
    assert rest.startswith("GPU 1 (0000:20:00.0): 8 lanes")
    assert "topology.pcie-width (error)" in rest
    assert "until 2030-12-31, by ml-platform: the riser card is replaced in March" in rest


def test_expired_waiver_is_shown_with_its_failure() -> None:
    judged = JudgedFinding(finding=finding(), waiver=waiver("gpu.free", expires=date(2020, 1, 1)), expired=True)
    text = terminal(complete(gpu_report(), results=(failure("gpu.free", findings=(judged,)),)))
    assert any("2020-01-01" in line and "ml-platform" in line for line in section(text, "Problems"))
    assert section(text, "Waived") == []


def test_scenario_shows_what_was_expected_and_measured() -> None:
    report = cpu_report()
    text = flat(terminal(report))
    for note in report.scenarios:
        assert f"{note.id} ({note.kind}) Expected: {note.expect}" in text
    for evidence in report.results[-2].evidence:
        assert f"- {evidence.subject}: {evidence.observed}" in text


def test_decision_names_checks_rule_and_owner() -> None:
    assert section(terminal(gpu_report(), width=120), "Failure policy")[:3] == [
        "  Roll back at once: versions.driver-for-cuda",
        "    Rule: at_once: versions.*",
        "    Decision owner: the owner of the machine, within 30 minutes",
    ]


def test_criteria_of_several_checks_name_their_checks() -> None:
    checks = ("gpu.free", "gpu.clocks", "host.swap")
    decision = replace(gpu_report().decisions[0], checks=checks, criteria=("gpu.*", "gpu.*", "host.*"))
    lines = section(terminal(replace(gpu_report(), decisions=(decision,))), "Failure policy")
    assert lines[1] == "    Rule: gpu.* (gpu.free, gpu.clocks); host.* (host.swap)"


def test_drift_is_a_section() -> None:
    lines = section(terminal(gpu_report(), width=120), "Changes since the last passing run")
    assert "ci/gpu-node.lock.yaml" in lines[0]
    assert lines[1] == "  - driver.version: 580.105.08 -> 575.57.08"
    assert "versions.driver-for-cuda, gpu.visible-to-driver" in lines[2]
    assert [line.split(":")[0] for line in lines[3:6]] == [
        "  - environment.NCCL_DEBUG",
        "  - packages.h5py",
        "  - Not compared",
    ]


def test_record_without_drift_is_not_a_section() -> None:
    same = replace(gpu_report(), drift=Drift(lock="x", recorded="y"))
    assert section(terminal(same), "Changes since the last passing run") == []


def test_unused_waiver_is_shown() -> None:
    (line,) = section(terminal(gpu_report(), width=120), "Unused waivers")[:1]
    assert line.startswith("  - topology.pairs (GPU 0 - GPU 1): until 2030")


def test_interruption_is_shown() -> None:
    interrupted = terminal(replace(cpu_report(), interrupted=True)).splitlines()
    (added,) = set(interrupted) - set(terminal(cpu_report()).splitlines())
    assert "interrupted" in added


def test_empty_report_is_readable() -> None:
    report = complete(gpu_report(), results=(), decisions=())
    assert flat(terminal(report)).endswith(f"INCONCLUSIVE in 3 min 12 s: {report.verdict.reason}; no check")


def test_colours_change_nothing_but_the_escape_codes() -> None:
    plain = terminal(gpu_report())
    coloured = terminal(gpu_report(), colour=True)
    assert "\x1b" not in plain
    assert "\x1b[1;31m" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_environment_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    before = terminal(gpu_report())
    for name, value in (("COLUMNS", "20"), ("FORCE_COLOR", "1"), ("TERM", "dumb"), ("TTY_COMPATIBLE", "1")):
        monkeypatch.setenv(name, value)
    assert terminal(gpu_report()) == before


def test_codes_of_other_programs_do_not_reach_the_terminal() -> None:
    text = terminal(with_text(cpu_report(), "a\x1b[31mred\x1b]0;title\x07 \r\x9b2J\udcff"))
    assert "a\\x1b" not in text
    assert "ared\\x1b]0;title\\x07 \\x0d\\x9b2J\\udcff" in text


def test_markup_like_text_is_kept() -> None:
    assert "[/bold] :smile: [red]x" in terminal(with_text(cpu_report(), "[/bold] :smile: [red]x"))


def test_python_stacks_keep_their_lines() -> None:
    stacks = 'Thread 0x1:\n  File "a.py", line 1 in fit\n  File "b.py", line 2 in <module>'
    report = complete(gpu_report(), results=(failure("gpu.free", finding("case", observed=stacks)),))
    assert '  case: Thread 0x1:\n      File "a.py", line 1 in fit\n      File "b.py"' in terminal(report)


def test_stream_without_unicode_gets_escapes() -> None:
    text = terminal(with_text(cpu_report(), "Grüße"), unicode=False)
    assert text.isascii()
    assert "Gr\\xfc\\xdfe" in text


def test_skipped_smoke_check_shows_its_reason() -> None:
    skipped = result("smoke.baseline", Status.SKIP, reason="--no-smoke was given", scenario="smoke.baseline")
    assert "smoke.baseline: --no-smoke was given" in flat(terminal(complete(cpu_report(), results=(skipped,))))
