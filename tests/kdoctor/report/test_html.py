"""The HTML report: its content, its independence from the network and other files, and its display in a browser."""

import base64
import hashlib
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import combinations
from pathlib import Path

import pytest

from helpers.browser import CHROMIUM, Tab, browser
from helpers.reports import LONG_COMMAND, MARKUP_COMMAND, cpu_report, failure, finding, gpu_report, passing_report
from kdoctor.engine.report import GpuLinkNote, GpuNote, Report
from kdoctor.facts import Node
from kdoctor.model import Remedy, Severity
from kdoctor.report.formats import render

VOID = {"meta"}


class Page(HTMLParser):
    """The elements, with a test that each is closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.unfolded = ""
        """The text that is seen before anything is unfolded."""
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag == "code":
            self.texts.setdefault("code", []).append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"details", "script", "style"} & {*self.open}:
            self.unfolded += data
        if "code" in self.open:
            self.texts["code"][-1] += data  # its words are elements
        elif self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def of(self, tag: str, **attributes: str) -> list[dict[str, str | None]]:
        return [found for name, found in self.elements if name == tag and attributes.items() <= found.items()]


def page(report: Report) -> Page:
    return Page(render(report, "html"))


def test_every_check_is_listed_and_every_cause_has_its_commands() -> None:
    found = page(gpu_report())
    named = set(found.texts["code"])
    assert named >= {result.id for result in gpu_report().results}
    assert named >= {LONG_COMMAND, MARKUP_COMMAND, "python -m pip install 'tensorflow==2.20.0'"}
    links = {(link["href"] or "").removeprefix("#") for link in found.of("a")}
    assert links == {"versions.driver-for-cuda", "gpu.visible-to-driver"}
    assert links <= {section.get("id") for section in found.of("section")}


def test_heading_names_the_host_and_each_cause_is_said_once() -> None:
    found = page(gpu_report(node=Node(name="node7", named_by="host name")))
    assert [text.strip() for text in found.texts["h1"]] == ["node7"]  # the verdict is in a span
    for text in found.texts["h2"]:
        assert found.unfolded.count(text.removeprefix("✗ ")) == 1
    passed = page(passing_report())
    assert passed.unfolded.count("All selected checks passed") == 1


def test_order_is_verdict_causes_changes_drawing_checks() -> None:
    text = render(gpu_report(), "html")
    parts = [
        "<header",
        'id="gpu.visible-to-driver"',
        'id="versions.driver-for-cuda"',
        "driver.version</span>",
        "<svg",
        "<code>topology.pcie-width</code>",
    ]
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_only_verdict_causes_changes_and_drawing_are_unfolded() -> None:
    unfolded = page(gpu_report()).unfolded
    for shown in ("GPU 3, 6: on the PCI bus", LONG_COMMAND, "gpu.replicas-match", "environment.NCCL_DEBUG", "NUMA 1"):
        assert shown in unfolded
    for folded in ("topology.pcie-width", "Without it, a job fails late", "the riser card is replaced"):
        assert folded not in unfolded


def test_notes_are_folded_and_the_command_to_check_again_is_not() -> None:
    raised = Remedy.configure("Raise the limit:", "ulimit -l unlimited")
    note = failure("host.memlock", finding("ulimit -l", remedy=raised), severity=Severity.INFO)
    report = gpu_report(results=(failure("gpu.free"), note), command="kdoctor check -q")
    found = page(report)
    assert "kdoctor check -q" in found.unfolded
    assert "ulimit" not in found.unfolded
    assert found.of("section", id="host.memlock")


def test_drift_and_decisions_are_shown() -> None:
    cells = " ".join(page(gpu_report()).texts["span"])
    assert "driver.version 580.105.08 575.57.08" in cells
    assert "Roll back at once: versions.driver-for-cuda" in page(gpu_report()).texts["h3"]


def test_failed_check_leads_with_its_findings() -> None:
    found = page(gpu_report())
    assert any("GPU 3, 6: on the PCI bus" in text for text in found.texts["h2"])
    assert "GPU 3 (0000:40:00.0): on the PCI bus, but the driver does not list it" in found.texts["span"]
    assert gpu_report().results[0].title not in [*found.texts["h2"], *found.texts["span"]]


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
    assert [float(bar["width"] or 0) for bar in found.of("rect", **{"class": "bar"})] == pytest.approx(
        [312 * 4.1 / 5.2, 312], abs=0.1
    )


def test_drawing_and_table_show_the_same_links() -> None:
    found = page(gpu_report())
    drawn = [line["class"] for line in found.of("line") if line.get("class") != "axis"]
    # Six pairs, three of them to GPU 3, which is lost; then a line of the legend for each kind.
    assert sorted(drawn[:6], key=str) == ["far", "far", *["lost-link"] * 3, "nvlink"]
    assert sorted(drawn[6:], key=str) == ["far", "lost-link", "nvlink"]
    assert len(found.of("rect", **{"class": "node lost"})) == 1
    assert len(found.of("path", **{"class": "bad"})) == 1
    assert "GPU 3 (lost)" in found.texts["span"]
    assert "GPU 0 to 3: NVIDIA H100 80GB HBM3" in found.texts["p"]


def many_gpus(count: int) -> Report:
    """A node with GPUs on NUMA nodes of four, one of which is lost."""
    gpus = tuple(GpuNote(index=index, name="H100", numa_node=index // 4, lost=index == 1) for index in range(count))
    pairs = combinations(range(count), 2)
    links = tuple(GpuLinkNote(first=one, second=other, label="NV18") for one, other in pairs)
    return gpu_report(gpus=gpus, gpu_links=links)


@pytest.mark.parametrize("count", [1, 2, 3, 8, 16])
def test_boxes_of_gpus_do_not_overlap_and_stay_in_the_drawing(count: int) -> None:
    drawing = render(many_gpus(count), "html").split('aria-label="GPU topology')[1].split("</svg>")[0]
    side = float(re.findall(r'viewBox="0 0 (\d+) ', render(many_gpus(count), "html").split("<h2>GPU topology")[1])[0])
    boxes = [tuple(map(float, found)) for found in re.findall(r'class="node[^"]*" x="([\d.]+)" y="([\d.]+)"', drawing)]
    assert len(boxes) == count
    assert all(0 <= x <= side - 58 and 0 <= y <= side - 36 for x, y in boxes)
    for one, other in combinations(boxes, 2):
        assert abs(one[0] - other[0]) >= 58 or abs(one[1] - other[1]) >= 36
    assert drawing.count('class="numa"') == (count // 4 if count > 4 else 0)


def test_gpu_of_a_cause_is_marked() -> None:
    lost = finding("GPU 2 (0000:30:00.0)", brief="")
    found = page(gpu_report(results=(failure("gpu.responding", lost),)))
    assert len(found.of("rect", **{"class": "node affected"})) == 1


@pytest.mark.parametrize("report", [cpu_report(), gpu_report()], ids=["cpu", "gpu"])
def test_page_fetches_nothing_and_its_policy_allows_its_own_script_only(report: Report) -> None:
    found = page(report)
    names = {name for name, _ in found.elements}
    assert not names & {"link", "img", "iframe", "object", "embed", "form"}
    for _, attributes in found.elements:
        assert not any(name.startswith("on") or name in ("src", "style") for name in attributes)
        assert (attributes.get("href") or "#").startswith("#")
    assert "url(" not in render(report, "html")
    (script,) = found.texts["script"]
    (policy,) = (meta["content"] for meta in found.of("meta") if "http-equiv" in meta)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


SCREENS = {"cpu": cpu_report(), "gpu": gpu_report(), "many": many_gpus(16)}
SIZES = [(width, dark) for width in (375, 1200) for dark in (False, True)]

UNREADABLE = """(() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (element) => {
    for (; element; element = element.parentElement) {
      const colour = channels(getComputedStyle(element).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    const text = walker.currentNode.textContent.trim();
    if (!text || element.closest("script") || !element.checkVisibility() || element.closest("svg")) continue;
    const [one, other] = [light(channels(getComputedStyle(element).color)), light(behind(element))];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    if (ratio < 4.5) found.push(`${text}: ${ratio.toFixed(2)}`);
  }
  return found;
})()"""
"""Texts with a contrast below 4.5 (https://www.w3.org/TR/WCAG22/#contrast-minimum)."""
CUT = """[...document.querySelectorAll(".command code")].filter((code) => {
  const box = code.getBoundingClientRect();
  return code.scrollWidth > code.clientWidth + 1 || box.left < 0 || box.right > innerWidth || box.height < 10;
}).map((code) => code.textContent)"""
"""Commands that are not wholly visible."""
UNFOLD = "document.querySelectorAll('details').forEach((part) => { part.open = true; })"
COPY = """(async () => {
  const board = navigator.clipboard;
  %s
  const found = [];
  for (const box of document.querySelectorAll(".command")) {
    const button = box.querySelector("button");
    button.scrollIntoView({ block: "center" });
    const { left, top, width, height } = button.getBoundingClientRect();
    const hit = document.elementFromPoint(left + width / 2, top + height / 2) === button;
    button.click();
    await new Promise((done) => setTimeout(done, 100));
    found.push([hit, box.querySelector("code").textContent, await board.readText()]);
  }
  return found;
})()"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with browser(tmp_path_factory.mktemp("profile")) as opened:
        opened.allow_clipboard()
        yield opened


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    for name, report in SCREENS.items():
        (folder / f"{name}.html").write_text(render(report, "html"), encoding="utf-8")
    return {name: folder / f"{name}.html" for name in SCREENS}


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
class TestInABrowser:
    @pytest.mark.parametrize("size", SIZES)
    @pytest.mark.parametrize("name", SCREENS)
    def test_page_fits_and_is_readable(
        self, tab: Tab, pages: dict[str, Path], name: str, size: tuple[int, bool]
    ) -> None:
        width, dark = size
        tab.show(pages[name], width=width, dark=dark)
        for folded in (True, False):
            if not folded:
                tab.run(UNFOLD)
            assert tab.run("document.scrollingElement.scrollWidth") <= width
            assert tab.run(CUT) == []
            assert tab.run(UNREADABLE) == []
        assert (
            tab.run("getComputedStyle(document.body).backgroundColor")
            == f"rgb({'13, 17, 23' if dark else '255, 255, 255'})"
        )
        assert tab.requested == [pages[name].as_uri()]

    @pytest.mark.parametrize("without", ["", "Object.defineProperty(navigator, 'clipboard', { value: undefined });"])
    @pytest.mark.parametrize("width", [375, 1200])
    def test_buttons_copy_the_exact_commands(self, tab: Tab, pages: dict[str, Path], width: int, without: str) -> None:
        tab.show(pages["gpu"], width=width, dark=False)
        tab.run(UNFOLD)
        found = tab.run(COPY % without)
        assert {command for _, command, _ in found} >= {LONG_COMMAND, MARKUP_COMMAND}
        assert all(hit for hit, _, _ in found)
        assert [copied for _, _, copied in found] == [command for _, command, _ in found]

    def test_first_screen_of_a_phone_has_the_verdict_and_the_first_fix(self, tab: Tab, pages: dict[str, Path]) -> None:
        tab.show(pages["gpu"], width=375, dark=False)
        assert tab.run("document.querySelector('h1').getBoundingClientRect().bottom") < 100
        assert tab.run("document.querySelector('.command').getBoundingClientRect().bottom") < 812
        short = "[...document.querySelectorAll('.command span')].filter(word => word.textContent.length < 25)"
        assert tab.run(f"Math.max(...{short}.map(word => word.offsetHeight))") < 30  # one line: no option is broken

    def test_print_is_light_and_unfolded(self, tab: Tab, pages: dict[str, Path]) -> None:
        tab.show(pages["gpu"], width=1200, dark=True)
        tab.run("dispatchEvent(new Event('beforeprint'))")
        assert tab.run("document.querySelectorAll('details:not([open])').length") == 0
        tab.run("dispatchEvent(new Event('afterprint'))")
        assert tab.run("document.querySelectorAll('details[open]').length") == 0
        tab.call(
            "Emulation.setEmulatedMedia", media="print", features=[{"name": "prefers-color-scheme", "value": "dark"}]
        )
        assert tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert tab.run("getComputedStyle(document.querySelector('button')).display") == "none"
        assert tab.run(UNREADABLE) == []
        tab.call("Emulation.setEmulatedMedia", media="")
        printed = tab.pdf()
        assert printed.startswith(b"%PDF-")
        assert len(re.findall(rb"/Type\s*/Page\b", printed)) >= 3
