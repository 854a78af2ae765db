"""Pages that are written by hand, with generated parts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from kdoctor.plugins.catalog import Catalog
from kdoctor_job.target.optimizers import INVARIANT, PARTLY, PROPORTIONAL, SCALES

DOCS = Path(__file__).parents[1]
SCREENS = DOCS.parent / "tests/kdoctor/report/terminal/__snapshots__/test_situations"
_SCREEN = re.compile(
    r"(?P<marker><!-- screen: (?P<name>[\w.-]+)(?P<short>, the first cause)? -->\n\n```text\n)(?P<text>.*?)(?=^```$)",
    re.DOTALL | re.MULTILINE,
)
"""A block with a screen of a report; its text is that of a snapshot."""


def with_screens(name: str) -> Callable[[Catalog], str]:
    """A page that is written by hand, with the current screens after ``<!-- screen: NAME -->``."""
    return lambda _: _SCREEN.sub(_screen, (DOCS / name).read_text(encoding="utf-8"))


def _screen(block: re.Match[str]) -> str:
    text = (SCREENS / f"test_screen[{block['name']}].txt").read_text(encoding="utf-8").rstrip("\n")
    heading, families, cause, *others, verdict = text.split("\n\n")
    if block["short"] and others:
        text = f"{heading}\n\n{families}\n\n{cause}\n\n...\n\n{verdict}"
    return f"{block['marker']}{text}\n"


_SCALES = re.compile(r"(?P<marker><!-- optimizers -->\n\n).*?(?=\n\n)", re.DOTALL)


def preflight_page(_: Catalog) -> str:
    """The page that is written by hand, with a table of optimizers after ``<!-- optimizers -->``."""
    rows = ["| Optimizer | A gradient of c * g | Why |", "| --- | --- | --- |"]
    whys = {name: re.sub(r"^\w -?= [^:;]+", r"`\g<0>`", scale.derivation) for name, scale in SCALES.items()}
    rows += [f"| {name} | {_STEPS[scale.kind]} | {whys[name]} |" for name, scale in SCALES.items()]
    page = (DOCS / "preflight.md").read_text(encoding="utf-8")
    return _SCALES.sub(lambda block: block["marker"] + "\n".join(rows), page)


_STEPS = {
    PROPORTIONAL: "makes a step c times as long",
    PARTLY: "makes a longer step",
    INVARIANT: "makes the same step",
}
