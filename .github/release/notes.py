"""Prints the section of CHANGELOG.md for a tag, as the text of its release.

``python .github/release/notes.py v1.2.3``. It fails if the tag is not the version of the code, or has no section, so
that a release never lacks its text.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_SECTION = re.compile(
    r"^## \[(?P<version>[^\]]+)\](?: - (?P<date>\S+))?[^\n]*\n(?P<text>.*?)(?=^## |\Z)", re.DOTALL | re.MULTILINE
)


def section(changelog: str, version: str) -> str:
    """The text of a version.

    Raises:
        ValueError: there is none, it has no date, or it is empty.
    """
    found = next((one for one in _SECTION.finditer(changelog) if one["version"] == version), None)
    if found is None:
        raise ValueError(f"CHANGELOG.md has no section [{version}]")
    if not re.fullmatch(r"\d{4}-\d{2}-\d{2}", found["date"] or ""):
        raise ValueError(f"CHANGELOG.md: section [{version}] has no date (## [{version}] - YYYY-MM-DD)")
    if not found["text"].strip():
        raise ValueError(f"CHANGELOG.md: section [{version}] is empty")
    return found["text"].strip() + "\n"


def version_of(source: str) -> str:
    """The version in kdoctor/version.py.

    Raises:
        ValueError: there is none.
    """
    found = re.search(r'^__version__ = "([^"]+)"$', source, re.MULTILINE)
    if found is None:
        raise ValueError("doctor/kdoctor/version.py has no __version__")
    return found[1]


def main(tag: str) -> None:
    """Print the section of a tag."""
    version = version_of((ROOT / "doctor/kdoctor/version.py").read_text(encoding="utf-8"))
    if tag != f"v{version}":
        raise SystemExit(f"the tag is {tag}, and the version of the code is {version}: expected v{version}")
    try:
        sys.stdout.write(section((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version))
    except ValueError as error:
        raise SystemExit(str(error)) from None


if __name__ == "__main__":
    if len(sys.argv) != 2:  # noqa: PLR2004 - the program and the tag
        raise SystemExit("usage: notes.py TAG")
    main(sys.argv[1])
