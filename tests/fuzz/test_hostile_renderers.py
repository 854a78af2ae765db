"""Each hostile string in each format: it is shown, and controls nothing."""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from helpers.hostile import HOSTILE
from helpers.reports import gpu_report, with_text
from kdoctor.commands.shell import quoted
from kdoctor.engine.report import Drift, DriftChange, Report
from kdoctor.model import Severity
from kdoctor.report.formats import FORMATS, render
from kdoctor.text.canvas import PLAIN
from kdoctor.text.sanitize import is_printable
from kdoctor_lint.model import Finding, LintReport, Spot
from kdoctor_lint.registry import RULES
from kdoctor_lint.report.formats import FORMATS as LINT_FORMATS

WORKFLOW = re.compile(r"^\s*::(?:error|set-output)|##\[error|##vso\[", re.MULTILINE | re.IGNORECASE)
SAMPLE = re.compile(r'(?:# (?:HELP|TYPE) .*|kdoctor_\w+\{(?:\w+="(?:[^"\\\n]|\\.)*",?)*\} (?:-?\d\S*|NaN))')


def report(text: str) -> Report:
    """A report with the text in every field that comes from a machine, a checklist or a package."""
    made = with_text(gpu_report(), text)
    drift = Drift(
        lock=text, recorded="2029-12-24T06:00:00+00:00", changes=(DriftChange(fact=text, old=text, new=text),)
    )
    names = replace(made.checklist, name=text)
    runs = tuple(replace(item, scenario=text, case=text) for item in gpu_report().trainings)
    return replace(made, drift=drift, checklist=names, trainings=runs, command=quoted("kdoctor", "check", text))


class Page(HTMLParser):
    """The tags of a page, with the names of their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))


def check_html(text: str, plain: str) -> None:
    # The same tags, whatever the text is: none comes from it.
    assert {tag for tag, _ in Page(text).tags} == {tag for tag, _ in Page(plain).tags}
    assert {names for _, names in Page(text).tags} <= {names for _, names in Page(plain).tags}
    assert text.count("<script") == plain.count("<script")


def check_markdown(text: str, plain: str) -> None:
    prose, fence = [], ""
    for line in text.split("\n"):
        mark = re.match(r"\s*(`{3,})(sh)?$", line)
        if fence:
            fence = "" if mark and mark[1] == fence else fence
        elif mark and mark[2]:
            fence = mark[1]
        else:
            prose.append(line)
    assert not fence  # every block of commands is closed by its own fence
    outside = "\n".join(prose)
    assert not re.search(r"(?<!\\)(?:\]\(|!\[|<script|<img|<b>)|@octocat|\\#1\b", outside)
    assert [line for line in prose if line.startswith("#")] == [
        line for line in prose if re.match(r"#{2,3} (?:kdoctor|\S+ |[A-Z])", line)
    ]


def check_json(text: str, plain: str) -> None:
    assert json.loads(text).keys() == json.loads(plain).keys()
    assert json.loads(text)["verdict"] == json.loads(plain)["verdict"]


def check_junit(text: str, plain: str) -> None:
    assert [item.tag for item in ET.fromstring(text).iter()] == [item.tag for item in ET.fromstring(plain).iter()]


def check_prometheus(text: str, plain: str) -> None:
    assert all(map(SAMPLE.fullmatch, text.splitlines())), [
        line for line in text.splitlines() if not SAMPLE.fullmatch(line)
    ]
    assert len(text.splitlines()) == len(plain.splitlines())


def check_nagios(text: str, plain: str) -> None:
    assert text.count("\n") == 1
    assert text.count("|") == 1


def check_line(text: str, plain: str) -> None:
    assert text.count("\n") == 1


def check_github(text: str, plain: str) -> None:
    *commands, last = text.splitlines()
    assert len(commands) == len(plain.splitlines()) - 1
    assert all(re.match("::(?:error|warning|notice) title=kdoctor(?:%3A [a-z.-]+)?::", line) for line in commands)
    assert not WORKFLOW.search(last)


def check_text(text: str, plain: str) -> None:
    assert not WORKFLOW.search(text)


FORMAT_CHECKS: Mapping[str, Callable[[str, str], None]] = {
    "html": check_html, "markdown": check_markdown, "json": check_json, "junit": check_junit,
    "prometheus": check_prometheus, "nagios": check_nagios, "line": check_line, "github": check_github,
    "terminal": check_text, "fix-script": check_text,
}  # fmt: skip


def test_every_format_is_checked() -> None:
    assert FORMAT_CHECKS.keys() == set(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_format_shows_hostile_text_without_obeying_it(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    record_property("hostile strings shown", (name, len(HOSTILE)))
    plain = render(report("word"), name)
    for title, text in HOSTILE.items():
        for verbosity in (0, 2) if name == "terminal" else (0,):
            shown = render(report(text), name, replace(PLAIN, verbosity=verbosity))
            assert is_printable(shown), title
            try:
                FORMAT_CHECKS[name](shown, plain)
            except AssertionError as error:
                raise AssertionError(f"{title}: {error}") from error


@pytest.mark.parametrize("name", LINT_FORMATS)
def test_lint_format_shows_hostile_text_without_obeying_it(
    name: str, record_property: Callable[[str, object], None]
) -> None:
    record_property("hostile strings shown", (f"lint {name}", len(HOSTILE)))
    rule = next(rule for rule in RULES.values() if rule.severity is Severity.ERROR)
    for title, text in HOSTILE.items():
        spot = Spot(path=text, line=1, column=1, end_line=1, end_column=2, cell=None)
        finding = Finding(rule=rule, spot=spot, message=text, source=text, own_fix=text)
        shown = LINT_FORMATS[name](LintReport(files=(text,), findings=(finding,), ignored=(), notes=(text,)), PLAIN)
        assert is_printable(shown), title
        if name in ("json", "sarif"):
            json.loads(shown)
        elif name == "github":
            assert shown.count("\n") == 2, title  # the finding, and the summary
        else:
            assert not WORKFLOW.search(shown), title
