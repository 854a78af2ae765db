"""What a preflight shows in a notebook."""

from html.parser import HTMLParser

import pytest

from helpers.reports import LONG_COMMAND, cpu_report, failure, gpu_report, with_text
from kdoctor.engine.report import Report
from kdoctor.model import Severity
from kdoctor.report.causes import cause_blocks
from kdoctor_job.preflight import Preflight


class Output(HTMLParser):
    """The cells of the rows, those that are folded apart, with a test that every element is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.names: set[str] = set()
        self.shown: list[list[str]] = []
        self.folded: list[list[str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    @property
    def rows(self) -> list[list[str]]:
        return self.folded if "details" in self.open else self.shown

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.add(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag == "td":
            self.rows[-1].append("")
        self.open += [tag] if tag != "br" else []

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "td" in self.open:
            self.rows[-1][-1] += data


def html_of(report: Report) -> str:
    return Preflight(report)._repr_html_()


def marks(rows: list[list[str]]) -> list[str]:
    return [mark.split()[-1] for mark, _ in rows]


def test_problems_are_shown_and_every_check_is_folded_failures_first() -> None:
    output = Output(html_of(cpu_report()))
    assert marks(output.shown) == ["WARNING"]
    assert marks(output.folded) == ["WARNING", "UNKNOWN", *["PASS"] * 3, *["SKIP"] * 4]


def test_info_is_folded() -> None:
    report = gpu_report(results=(failure("job.prefetch", severity=Severity.INFO),))
    output = Output(html_of(report))
    assert output.shown == []
    assert marks(output.folded) == ["NOTE"]


def test_cause_has_its_fix() -> None:
    row = next(text for _, text in Output(html_of(gpu_report())).shown if "versions.driver-for-cuda" in text)
    assert "tensorflow 2.21.0: built for CUDA 12.5" in row
    assert LONG_COMMAND in row


def test_other_checks_have_evidence_or_reason() -> None:
    folded = [text for _, text in Output(html_of(cpu_report())).folded]
    assert any("2.21.0" in text and "versions.tensorflow-installed" in text for text in folded)
    assert any("the checklist expects no GPUs" in text and "gpu.free" in text for text in folded)


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '"><img src=x onerror=y>', "a\x1b[31mb"])
def test_odd_text_is_text(text: str) -> None:
    assert not {"script", "img"} & Output(html_of(with_text(cpu_report(), text))).names
    assert "\x1b" not in html_of(with_text(cpu_report(), text))


def test_text_is_the_terminal_report_without_colours() -> None:
    assert str(Preflight(cpu_report())).startswith("kdoctor ")
    assert "\x1b" not in str(Preflight(cpu_report()))


def test_guard_prints_each_warning(capsys: pytest.CaptureFixture[str]) -> None:
    result = Preflight(cpu_report(target="/opt/job/bin/python, MirroredStrategy over 2 replicas"))
    result.require()
    verdict, *warnings = capsys.readouterr().out.splitlines()
    assert verdict.startswith("kdoctor: READY in ")
    assert verdict.endswith("; MirroredStrategy over 2 replicas")
    (block,), (line,) = cause_blocks(result.report), warnings
    assert block.findings[0] in line
    assert block.id in line
