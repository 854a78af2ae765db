from __future__ import annotations

import inspect
import pkgutil
import re
from pathlib import Path

import pytest

from helpers.command import kdoctor
from helpers.reports import cpu_report
from kdoctor.report import formats
from kdoctor.report.formats import FORMATS, render
from kdoctor.text.canvas import Canvas

PAGE = Path(__file__).parents[3] / "docs/formats.md"


@pytest.mark.parametrize("name", FORMATS)
def test_every_renderer_has_the_same_signature(name: str) -> None:
    renderer = pkgutil.resolve_name(formats._RENDERERS[name])
    assert list(inspect.signature(renderer).parameters) == ["report", "canvas"]


@pytest.mark.parametrize("name", FORMATS)
def test_report_is_the_same_each_time_and_ends_with_a_line_feed(name: str) -> None:
    text = render(cpu_report(), name, Canvas(width=60))
    assert text.endswith("\n")
    assert render(cpu_report(), name, Canvas(width=60)) == text


def test_unknown_format_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        render(cpu_report(), "pdf")


@pytest.mark.parametrize("command", ["check", "smoke"])
def test_help_lists_the_formats(command: str) -> None:
    shown = kdoctor(command, "--help", variables={"COLUMNS": "300"}).stdout
    assert f" {'|'.join(FORMATS)} " in shown


def test_documentation_lists_the_formats() -> None:
    assert tuple(re.findall(r"^\| `([\w-]+)` \|", PAGE.read_text(), re.MULTILINE)) == FORMATS
