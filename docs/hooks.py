"""Adds to the site what is not in docs/: pages that are written from the code, and the pages of the extensions.

A link to a page of an extension that is not installed becomes text, and its entry in the navigation goes.
"""

import posixpath
import re
import sys
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parents[1]))
from docs.generator.handwritten import with_screens
from docs.generator.pages import LOCATION, ROOT, files_of_extensions, generated_pages

_LINK = re.compile(r"^```.*?^```|\[(?P<text>(?:\\.|[^\[\]\\])*)\]\((?P<target>[^)\s]+)\)", re.DOTALL | re.MULTILINE)
"""A block of code, or a link."""
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
    pages = files_of_extensions() | generated_pages()
    for location, content in pages.items():
        name = site_path(location) or location
        LOCATIONS[name] = location
        if found := files.get_file_from_path(name):
            files.remove(found)
        given: dict[str, Any] = {"content": content} if isinstance(content, str) else {"abs_src_path": str(content)}
        files.append(File.generated(config, name, **given))


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Add the screens, and give links their path on the site."""
    name = page.file.src_uri
    location = LOCATIONS.get(name, f"docs/{name}")
    return _LINK.sub(lambda link: _linked(link, name, location), with_screens(markdown))


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
