"""The screens of reports in pages that are written by hand."""

import re
from pathlib import Path

SCREENS = Path(__file__).parents[2] / "tests/kdoctor/report/terminal/__snapshots__/test_situations"
_SCREEN = re.compile(
    r"(?P<marker><!-- screen: (?P<name>[\w.-]+)(?P<short>, the first cause)? -->\n)(?:\n```text\n.*?^```\n)?",
    re.DOTALL | re.MULTILINE,
)
"""Where a screen of a report belongs, and the one that is there. Its text is that of a snapshot."""


def with_screens(text: str) -> str:
    """A page with the current screens after ``<!-- screen: NAME -->``."""
    return _SCREEN.sub(_screen, text)


def _screen(block: re.Match[str]) -> str:
    text = (SCREENS / f"test_screen[{block['name']}].txt").read_text(encoding="utf-8").rstrip("\n")
    heading, families, cause, *others, verdict = text.split("\n\n")
    if block["short"] and others:
        text = f"{heading}\n\n{families}\n\n{cause}\n\n...\n\n{verdict}"
    return f"{block['marker']}\n```text\n{text}\n```\n"
