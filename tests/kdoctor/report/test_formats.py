import inspect
import os
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
    assert f"Output format: {', '.join(FORMATS)}." in " ".join(shown.replace("│", " ").split())


def test_documentation_lists_the_formats() -> None:
    assert tuple(re.findall(r"^\| `([\w-]+)` \|", PAGE.read_text(), re.MULTILINE)) == FORMATS


def install(folder: Path, name: str) -> dict[str, str]:
    """Install a distribution whose format has this name."""
    info = folder / "site_formats-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: site-formats\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[kdoctor.formats]\n{name} = site_formats:render\n")
    code = (
        "def render(report, canvas):\n    return ''.join(f'{one.id} {one.status.value}\\n' for one in report.results)\n"
    )
    (folder / "site_formats.py").write_text(code)
    return {"PYTHONPATH": os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH")]))}


def test_format_of_a_plugin_is_offered_and_written(tmp_path: Path) -> None:
    variables = install(tmp_path, "site")
    shown = kdoctor("check", "--help", variables={"COLUMNS": "300", **variables}).stdout
    assert f"{', '.join([*FORMATS, 'site'])}." in " ".join(shown.replace("│", " ").split())
    output = ("--format", "site", "--output", f"site={tmp_path / 'report'}")
    done = kdoctor("check", "-c", "cpu-smoke", "--no-smoke", "--select", "host.memory", *output, variables=variables)
    assert "host.memory pass\n" in done.stdout
    assert (tmp_path / "report").read_text() == done.stdout


def test_plugin_does_not_replace_a_format_of_kdoctor(tmp_path: Path) -> None:
    done = kdoctor("check", "-c", "cpu-smoke", "--no-smoke", variables=install(tmp_path, "json"))
    assert done.returncode == 2
    assert "site-formats (kdoctor.formats: json)" in done.stderr
