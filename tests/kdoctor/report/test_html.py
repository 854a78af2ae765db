"""The HTML report: its content, its independence from scripts and other files, and its display in a browser."""

from __future__ import annotations

import re
import shutil
import subprocess
import zlib
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from helpers.reports import LONG_COMMAND, MARKUP_COMMAND, cpu_report, failure, finding, gpu_report, with_text
from kdoctor.engine.report import Report
from kdoctor.report.formats import render

VOID = {"meta"}


class Page(HTMLParser):
    """The elements, with a test that each is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def of(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        return [found for name, found in self.elements if name == tag and attributes.items() <= found.items()]


def page(report: Report) -> Page:
    return Page(render(report, "html"))


def test_every_check_is_listed_and_every_failure_has_its_commands() -> None:
    found = page(gpu_report())
    named = set(found.texts["code"])
    assert named >= {result.id for result in gpu_report().results}
    commands = "\n".join(found.texts["pre"])
    for command in (LONG_COMMAND, MARKUP_COMMAND, "python -m pip install 'tensorflow==2.20.0'"):
        assert command in commands
    links = {(link["href"] or "").removeprefix("#") for link in found.of("a")}
    assert links == {"versions.driver-for-cuda", "gpu.visible-to-driver"}
    assert links <= {section.get("id") for section in found.of("section")}


def test_drift_and_decisions_are_shown() -> None:
    cells = " ".join(page(gpu_report()).texts["span"])
    assert "driver.version 580.105.08 575.57.08" in cells
    assert "Roll back at once: versions.driver-for-cuda" in page(gpu_report()).texts["h3"]


def test_failed_check_leads_with_its_findings() -> None:
    found = page(gpu_report())
    heading = "GPU 3 (0000:40:00.0): on the PCI bus, but the driver does not list it"
    assert heading in found.texts["h3"]
    assert heading in found.texts["span"]
    assert gpu_report().results[0].title not in [*found.texts["h3"], *found.texts["span"]]


def test_findings_with_another_fix_share_no_anchor() -> None:
    other = finding("GPU 9", remedy=replace(finding().remedy, summary="Replace the GPU."))
    found = page(gpu_report(results=(failure("gpu.free", finding(), other),)))
    assert [section.get("id") for section in found.of("section", **{"class": "card fail"})] == ["gpu.free", None]


def test_losses_are_plotted_with_a_cross_where_one_is_not_finite() -> None:
    found = page(cpu_report())
    curves = found.of("polyline")
    assert [curve["class"] for curve in curves] == ["one", "two"]
    points = [tuple(map(float, point.split(","))) for point in (curves[0]["points"] or "").split()]
    assert len(points) == 3
    # 1.31, 0.84, 0.66: the first at the top, the last at the bottom, the second at (0.84 - 0.66) / 0.65 of the height.
    heights = [126 - (126 - 14) * share for share in (1, 0.18 / 0.65, 0)]
    assert [y for _, y in points] == pytest.approx(heights, abs=0.1)
    assert len(found.of("path", **{"class": "bad"})) == 1
    # The longer step has the whole width, the other its share: 4.1 ms of 5.2 ms.
    assert [float(bar["width"] or 0) for bar in found.of("rect")] == pytest.approx([312 * 4.1 / 5.2, 312], abs=0.1)


def test_drawing_and_table_show_the_same_links() -> None:
    found = page(gpu_report())
    drawn = [line["class"] for line in found.of("line") if line.get("class") != "axis"]
    # Six pairs, then a line of the legend for each of the five kinds.
    assert sorted(drawn[:6], key=str) == ["blocked", "far", "far", "near", "nvlink", "unknown-link"]
    assert sorted(drawn[6:], key=str) == ["blocked", "far", "near", "nvlink", "unknown-link"]
    assert len(found.of("circle", **{"class": "node lost"})) == 1
    assert "GPU 3 (lost)" in found.texts["span"]
    assert "GPU 0 to 3: NVIDIA H100 80GB HBM3" in found.texts["p"]


@pytest.mark.parametrize("report", [cpu_report(), gpu_report()], ids=["cpu", "gpu"])
def test_page_has_no_scripts_and_fetches_nothing(report: Report) -> None:
    found = page(report)
    names = {name for name, _ in found.elements}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "form"}
    for _, attributes in found.elements:
        assert not any(name.startswith("on") or name in ("src", "style") for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    assert "url(" not in render(report, "html")
    assert "default-src 'none'" in render(report, "html")


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", '"><img src=x onerror=y>', "</style>&amp;", "a\nb é"])
def test_odd_text_is_text(text: str) -> None:
    found = page(with_text(gpu_report(), text))
    assert not found.of("script")
    assert not found.of("img")
    assert text in found.texts["dd"]


CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
in_browser = [pytest.mark.browser, pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")]


def browse(folder: Path, text: str, *options: str) -> str:
    """Open a page in a headless chromium."""
    (folder / "page.html").write_text(text, encoding="utf-8")
    command = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder / 'profile'}"]
    done = subprocess.run(
        [*command, *options, (folder / "page.html").as_uri()], check=True, capture_output=True, text=True, timeout=120
    )
    return done.stdout


class TestInABrowser:
    pytestmark = in_browser

    @pytest.mark.parametrize(("scheme", "background"), [("1", (255, 255, 255)), ("0", (13, 17, 23))])
    def test_colours_follow_the_preferred_scheme(
        self, tmp_path: Path, scheme: str, background: tuple[int, int, int]
    ) -> None:
        shot = tmp_path / "shot.png"
        options = (f"--blink-settings=preferredColorScheme={scheme}", "--window-size=800,1200", f"--screenshot={shot}")
        browse(tmp_path, render(gpu_report(), "html"), *options)
        assert first_pixel(shot.read_bytes()) == background

    @pytest.mark.parametrize("report", [cpu_report(), gpu_report()], ids=["cpu", "gpu"])
    def test_page_fits_a_phone(self, tmp_path: Path, report: Report) -> None:
        text = render(report, "html")
        measured = re.sub(r"<meta http-equiv[^>]*>", "<style>html { width: 360px }</style>", text).replace(
            "</body>",
            "<script>document.title = [document.body.scrollWidth, document.body.scrollHeight].join()</script></body>",
        )
        title = re.search(r"<title>(\d+),(\d+)</title>", browse(tmp_path, measured, "--dump-dom"))
        assert title
        assert int(title[1]) <= 360
        assert int(title[2]) > 1000


def first_pixel(png: bytes) -> tuple[int, ...]:
    """The colour of the upper left corner. No filter of the first line changes its first pixel."""
    data, place = b"", 8
    while place < len(png):
        length, kind = int.from_bytes(png[place : place + 4], "big"), png[place + 4 : place + 8]
        if kind == b"IDAT":
            data += png[place + 8 : place + 8 + length]
        place += 12 + length
    return tuple(zlib.decompress(data)[1:4])
