"""Renders a comparison for a terminal, as Markdown for a pull request, and as JSON."""

from collections.abc import Iterator
from typing import Literal

from kdoctor.diff.model import KINDS, ChecklistDiff, Comparison, Kind
from kdoctor.text.markdown import escape
from kdoctor.text.sanitize import clean_line, cleaned

Format = Literal["terminal", "markdown", "json"]
FORMATS: tuple[Format, ...] = ("terminal", "markdown", "json")

_TITLES: dict[Kind, str] = {
    "loosened": "Loosened: something that failed may pass now",
    "tightened": "Tightened: something that passed may fail now",
    "moved": "Moved: a different expectation or recorded fact",
    "cosmetic": "Cosmetic",
}


def render_diff(comparison: Comparison, format: Format) -> str:  # noqa: A002 - the option's name
    """The comparison in a format."""
    clean = cleaned(comparison)
    if format == "json":
        return _json(clean)
    return "".join(f"{line}\n" for line in (_markdown(clean) if format == "markdown" else _terminal(clean)))


def summary(comparison: Comparison) -> str:
    """``2 loosened, 1 moved`` or ``no changes``."""
    counts = [(kind, len(comparison.of(kind))) for kind in KINDS]
    return ", ".join(f"{number} {kind}" for kind, number in counts if number) or "no changes"


def _terminal(comparison: Comparison) -> Iterator[str]:
    yield f"{clean_line(comparison.old)} -> {clean_line(comparison.new)}: {summary(comparison)}"
    for kind in KINDS:
        if comparison.of(kind):
            yield from ("", _TITLES[kind])
        for change in comparison.of(kind):
            old, new = (clean_line(value or "nothing") for value in (change.old, change.new))
            yield f"  {clean_line(change.where)}: {old} -> {new}"
            yield f"      {clean_line(change.why)}"
    if comparison.notes:
        yield from ("", "Questions")
        yield from (f"  - {clean_line(note)}" for note in comparison.notes)


def _markdown(comparison: Comparison) -> Iterator[str]:
    yield f"### kdoctor checklist: {summary(comparison)}"
    yield ""
    yield f"{escape(comparison.old)} → {escape(comparison.new)}"
    for kind in KINDS:
        changes = comparison.of(kind)
        if not changes:
            continue
        yield ""
        folded = kind == "cosmetic"
        yield from ("<details><summary>Cosmetic</summary>", "") if folded else (f"**{_TITLES[kind]}**", "")
        yield from ("| Where | Before | After | |", "|---|---|---|---|")
        for change in changes:
            cells = (change.where, change.old or "nothing", change.new or "nothing", change.why)
            yield f"| {' | '.join(escape(cell) or '-' for cell in cells)} |"
        if folded:
            yield from ("", "</details>")
    if comparison.notes:
        yield ""
        yield from (f"- ⚠ {escape(note)}" for note in comparison.notes)


def _json(comparison: Comparison) -> str:
    counts = {kind: len(comparison.of(kind)) for kind in KINDS}
    values = {"schema": "kdoctor/checklist-diff/v1", "counts": counts, **vars(comparison)}
    return ChecklistDiff.model_validate(values, from_attributes=True).to_json()
