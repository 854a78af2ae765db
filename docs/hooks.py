"""Adds to the site what is not in docs/: pages that are written from the code, and the pages of the extensions.

A link to a page of an extension that is not installed becomes text, and its entry in the navigation goes. The id of a
check becomes a link to its reference, which is in no file of the repository.
"""

import posixpath
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parents[1]))
from docs.generator.handwritten import with_screens
from docs.generator.pages import LOCATION, ROOT, files_of_extensions, generated_pages

_BLOCK = r"^```.*?^```"
_LINK = re.compile(rf"{_BLOCK}|\[(?P<text>(?:\\.|[^\[\]\\])*)\]\((?P<target>[^)\s]+)\)", re.DOTALL | re.MULTILINE)
"""A block of code, or a link."""
_ID = re.compile(rf"{_BLOCK}|\[[^\]]*\]\(|`+(?P<id>[a-z]+\.[a-z0-9-]+)?[^`]*`+", re.DOTALL | re.MULTILINE)
"""A block of code, the text of a link, or code, which may be the id of a check."""
REFERENCES: dict[str, str] = {}
"""The ids of checks, to the location of their reference."""
LOCATIONS: dict[str, str] = {}
"""The path on the site of the pages of extensions, to their location in the repository."""


def on_config(config: Any) -> None:
    """Give the entries of the navigation their path on the site."""
    config.nav = _entries(config.nav)


def _entries(nav: list[Any]) -> list[Any]:
    kept = []
    for entry in nav:
        ((title, target),) = entry.items()
        shown = _entries(target) if isinstance(target, list) else site_path(f"docs/{target}")
        kept += [{title: shown}] if shown else []
    return kept


def on_files(files: Files, config: Any) -> None:
    """Add the pages."""
    generated = generated_pages()
    REFERENCES.update(_references(generated))
    pages = files_of_extensions() | generated
    for location, content in pages.items():
        name = site_path(location) or location
        LOCATIONS[name] = location
        if found := files.get_file_from_path(name):
            files.remove(found)
        given: dict[str, Any] = {"content": content} if isinstance(content, str) else {"abs_src_path": str(content)}
        files.append(File.generated(config, name, **given))


def _references(pages: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The ids that head a section of a generated page, or the page."""
    for location, text in pages.items():
        for mark, name in re.findall(r"^(#{1,3}) ([a-z]+\.[a-z0-9-]+)$", text, re.MULTILINE):
            yield name, location if mark == "#" else f"{location}#{name.replace('.', '')}"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Add the screens, and give links their path on the site."""
    name = page.file.src_uri
    location = LOCATIONS.get(name, f"docs/{name}")
    text = _ID.sub(lambda found: _referring(found, location), with_screens(markdown))
    return _LINK.sub(lambda link: _linked(link, name, location), text)


def _referring(found: re.Match[str], location: str) -> str:
    target = REFERENCES.get(found["id"] or "")
    if not target or found.group() != f"`{found['id']}`":
        return found.group()
    return f"[{found.group()}]({posixpath.relpath(target, posixpath.dirname(location))})"


def _linked(link: re.Match[str], name: str, location: str) -> str:
    path, hash_sign, anchor = (link["target"] or "").partition("#")
    target = posixpath.normpath(posixpath.join(posixpath.dirname(location), path))
    if not path or "://" in path or not LOCATION.fullmatch(target):
        return link.group()
    found = site_path(target)
    if not found:
        return link["text"]
    return f"[{link['text']}]({posixpath.relpath(found, posixpath.dirname(name) or '.')}{hash_sign}{anchor})"


def site_path(location: str) -> str | None:
    """The path on the site, or None for a page of an extension that is not there."""
    matched = LOCATION.fullmatch(posixpath.normpath(location))
    if not matched:
        return location.removeprefix("docs/")
    return matched["name"] if (ROOT / matched["folder"]).is_dir() else None
