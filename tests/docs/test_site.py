"""The documentation site: it builds strictly, every page is near the start page, and no link is dead."""

import importlib.util
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import pytest
from docs.generator.pages import pages_by_location

from helpers.command import captured
from kdoctor.failures.known import load_failures

ROOT = Path(__file__).parents[2]
CLICKS = 3
HOST = "http://site.invalid/"

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("material") is None, reason="MkDocs Material is not installed: make site"
)

# What a browser loads without a click, and the attribute that names it.
LOADED = {
    "script": "src",
    "link": "href",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
}
# A <link> with one of these does not load its target.
NOT_LOADED = {"canonical", "next", "prev", "alternate"}


@dataclass
class Page:
    """What one HTML page names."""

    text: str
    links: list[str] = field(default_factory=list)
    loaded: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)


class _Reader(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.page = Page(text)
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.page.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.page.links.append(values["href"])
        if tag in LOADED and LOADED[tag] in values and values.get("rel") not in NOT_LOADED:
            self.page.loaded.append(values[LOADED[tag]])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, built strictly."""
    folder = tmp_path_factory.mktemp("site")
    done = captured(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[str, Page]:
    """Each page by its path below the site."""
    return {
        path.relative_to(site).as_posix(): _Reader(path.read_text(encoding="utf-8")).page
        for path in site.rglob("*.html")
    }


def targets(name: str, page: Page) -> Iterator[tuple[str, str]]:
    """The path below the site and the anchor of each internal link of the page."""
    for link in page.links:
        parts = urlsplit(urljoin(f"{HOST}{name}", link))
        if f"{parts.scheme}://{parts.netloc}/" == HOST:
            path = unquote(parts.path).lstrip("/")
            yield (f"{path}index.html" if path == "" or path.endswith("/") else path), unquote(parts.fragment)


def test_internal_links_and_anchors_exist(site: Path, pages: dict[str, Page]) -> None:
    dead = [
        f"{name}: {path}#{anchor}"
        for name, page in pages.items()
        if name != "404.html"  # its links are absolute, for a site at the root of a host
        for path, anchor in targets(name, page)
        if not (site / path).is_file() or (anchor and path in pages and anchor not in pages[path].anchors)
    ]
    assert dead == []


def test_every_page_is_within_three_clicks_of_the_start_page(pages: dict[str, Page]) -> None:
    reached = {"index.html"}
    for _ in range(CLICKS):
        reached |= {path for name in reached & set(pages) for path, _ in targets(name, pages[name])}
    assert set(pages) - {"404.html"} <= reached
    # The tree of the sources is complete: no page was left out of the build.
    assert len(pages) == len(pages_by_location()) + 1  # 404.html


def test_included_files_are_in_their_pages(pages: dict[str, Page]) -> None:
    # A formatter that takes the marker of an include for Python leaves it in the page.
    assert [name for name, page in pages.items() if "docs/examples/" in page.text] == []
    assert "scratch_space" in pages["writing-plugins/index.html"].text


def test_nothing_is_loaded_from_another_host(site: Path, pages: dict[str, Page]) -> None:
    external = [
        f"{name}: {target}" for name, page in pages.items() for target in page.loaded if urlsplit(target).netloc
    ]
    assert external == []
    styles = [path.name for path in site.rglob("*.css") if "url(http" in path.read_text(encoding="utf-8")]
    assert styles == []


def test_search_finds_known_failures_by_their_message(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    texts = {entry["location"]: entry["text"] for entry in index["docs"]}
    failures = load_failures().failure_modes
    assert {f"failure-modes/{failure.id}/" for failure in failures} <= set(texts)
    titles = {entry["location"]: entry["title"] for entry in index["docs"]}
    assert "Could not find cuda drivers" in titles["failure-modes/cudart_not_found/"]
    assert "CUDA_ERROR_INVALID_PTX" in texts["failure-modes/blackwell_invalid_ptx/"]
