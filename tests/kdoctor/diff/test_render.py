from __future__ import annotations

import json
from itertools import pairwise

from markdown_it import MarkdownIt

from kdoctor.diff.model import Change, Comparison, Kind
from kdoctor.diff.render import render_diff, summary


def change(kind: Kind, where: str, old: str | None = "1", new: str | None = "2") -> Change:
    return Change(kind=kind, where=where, old=old, new=new, why=f"{where} was changed")


FOUND = Comparison(
    old="a.yaml",
    new="b.yaml",
    changes=(
        change("loosened", "checks.gpu.free.severity", "error", "info"),
        change("tightened", "assumptions.python", None, "a | b `c` <d> \x1b[31mred"),
        change("cosmetic", "version"),
    ),
    notes=("Ask *why*.",),
)
NOTHING = Comparison(old="a.yaml", new="b.yaml")


def test_the_terminal_has_each_change_under_its_kind() -> None:
    assert render_diff(FOUND, "terminal").splitlines() == [
        "a.yaml -> b.yaml: 1 loosened, 1 tightened, 1 cosmetic",
        "",
        "Loosened: something that failed before may pass now",
        "  checks.gpu.free.severity: error -> info",
        "      checks.gpu.free.severity was changed",
        "",
        "Tightened: something that passed before may fail now",
        "  assumptions.python: nothing -> a | b `c` <d> red",
        "      assumptions.python was changed",
        "",
        "Cosmetic",
        "  version: 1 -> 2",
        "      version was changed",
        "",
        "To ask about",
        "  - Ask *why*.",
    ]


def test_nothing_is_said_in_one_line() -> None:
    assert render_diff(NOTHING, "terminal") == "a.yaml -> b.yaml: no change\n"
    assert summary(NOTHING) == "no change"


def test_the_markdown_is_tables_whose_cells_hold_together() -> None:
    tokens = MarkdownIt("commonmark").enable("table").parse(render_diff(FOUND, "markdown"))
    cells = [
        "".join(child.content for child in token.children or [])
        for before, token in pairwise(tokens)
        if before.type == "td_open"
    ]
    assert cells[:4] == ["checks.gpu.free.severity", "error", "info", "checks.gpu.free.severity was changed"]
    assert cells[4:7] == ["assumptions.python", "nothing", "a | b `c` <d> red"]
    assert len(cells) == 12
    assert render_diff(FOUND, "markdown") == render_diff(FOUND, "markdown")


def test_the_json_has_counts_changes_and_notes() -> None:
    document = json.loads(render_diff(FOUND, "json"))
    assert document["schema"] == "kdoctor/checklist-diff/v1"
    assert document["counts"] == {"loosened": 1, "tightened": 1, "moved": 0, "cosmetic": 1}
    assert document["changes"][1]["old"] is None
    assert document["notes"] == ["Ask *why*."]
