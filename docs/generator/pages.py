"""The pages of the site that are not in git, and those of the extensions.

A page has a location in the repository, whether it is a file or not: ``docs/checks.md``,
``doctor/kdoctor_lint/docs/lint/clipping.md``. Links between pages are relative to it, so they also work in an editor.
"""

import re
import runpy
from collections.abc import Callable, Mapping
from pathlib import Path

from docs.generator.checks import checks_page
from docs.generator.commands import cli_page
from docs.generator.failures import failure_pages
from docs.generator.hardware import measured_hardware_page
from docs.generator.matrix import matrix_page
from docs.generator.truth import truth_page

from kdoctor.catalog.load import Catalog, load_catalog

ROOT = Path(__file__).parents[2]
PAGES: Mapping[str, Callable[[Catalog], str]] = {
    "docs/checks.md": checks_page,
    "docs/keras-truth.md": truth_page,
    "docs/measured-hardware.md": measured_hardware_page,
    "docs/reference/cli.md": cli_page,
    "docs/version-matrix.md": matrix_page,
}
"""Location to the function that writes the page."""
LOCATION = re.compile(r"(?P<folder>docs|doctor/kdoctor_\w+/docs)/(?P<name>.+)")
"""The folder of a page, and its path on the site."""


def files_of_extensions() -> dict[str, Path]:
    """The pages and downloads in ``doctor/kdoctor_*/docs``, by location."""
    found = ROOT.glob("doctor/kdoctor_*/docs/**/*")
    return {path.relative_to(ROOT).as_posix(): path for path in sorted(found) if path.suffix in {".md", ".ipynb"}}


def generated_pages() -> dict[str, str]:
    """The pages that are written from the code, by location.

    The file ``doctor/kdoctor_NAME/docs/pages.py`` of an extension has a function ``pages``: path on the site to text.
    """
    pages: dict[str, str] = {}
    for path in sorted(ROOT.glob("doctor/kdoctor_*/docs/pages.py")):
        written: Mapping[str, str] = runpy.run_path(str(path))["pages"]()
        pages |= {f"{path.parent.relative_to(ROOT).as_posix()}/{name}": text for name, text in written.items()}
    catalog = load_catalog()
    theirs = {matched["name"]: location for location in pages if (matched := LOCATION.fullmatch(location))}
    return {
        **pages,
        **{location: write(catalog) for location, write in PAGES.items()},
        **{f"docs/{name}": text for name, text in failure_pages(catalog, theirs).items()},
    }


def pages_by_location() -> dict[str, str]:
    """The text of every page of the site, by location. A generated page replaces the file that it is made of."""
    return written_pages() | generated_pages()


def written_pages() -> dict[str, str]:
    """The text of every page that is a file, by location."""
    files = {path.relative_to(ROOT).as_posix(): path for path in sorted((ROOT / "docs").rglob("*.md"))}
    files |= {location: path for location, path in files_of_extensions().items() if path.suffix == ".md"}
    return {location: path.read_text(encoding="utf-8") for location, path in files.items()}
