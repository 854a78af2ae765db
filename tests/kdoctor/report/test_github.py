import re
from urllib.parse import unquote

from helpers.reports import MARKUP_COMMAND, complete, cpu_report, failure, gpu_report
from kdoctor.engine.report import Report
from kdoctor.model import Severity
from kdoctor.report.formats import render

# As the runner parses a line (ActionCommand.TryParseV2 of actions/runner): command, properties, data.
COMMAND = re.compile(r"^::(?P<command>[a-z-]+)(?: (?P<properties>.*?))?::(?P<data>.*)$")


def commands(report: Report) -> list[tuple[str, str, str]]:
    """Level, title and message of each annotation."""
    found = []
    for line in render(report, "github").splitlines():
        read = COMMAND.match(line)
        if read:
            properties = dict(part.split("=", 1) for part in read["properties"].split(","))
            assert set(properties) == {"title"}
            found.append((read["command"], unquote(properties["title"]), unquote(read["data"])))
    return found


def test_each_cause_is_an_annotation_with_its_fix() -> None:
    """And what could not be judged is one: GitHub shows ten of a kind only."""
    shown = commands(gpu_report())
    assert [(level, title) for level, title, _ in shown] == [
        ("error", "kdoctor: gpu.visible-to-driver"),
        ("error", "kdoctor: versions.driver-for-cuda"),
        ("error", "kdoctor"),
    ]
    assert shown[0][2].startswith("GPU 3, 6: on the PCI bus")
    assert MARKUP_COMMAND in shown[1][2]
    assert "host.shared-memory" in shown[2][2]


def test_warning_does_not_become_an_error() -> None:
    """The warning that cpu-smoke always has. Its accepted unknown is not shown."""
    assert [(level, title) for level, title, _ in commands(cpu_report())] == [
        ("warning", "kdoctor: smoke.starved-replica")
    ]


def test_info_is_a_notice() -> None:
    results = (failure("host.swap", severity=Severity.INFO),)
    assert [level for level, *_ in commands(complete(cpu_report(), results=results))] == ["notice"]


def test_last_line_is_the_verdict() -> None:
    assert render(cpu_report(), "github").splitlines()[-1].startswith("kdoctor READY in 34.2 s")
