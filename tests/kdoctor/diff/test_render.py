import json
from dataclasses import replace
from itertools import pairwise

from markdown_it import MarkdownIt
from syrupy.assertion import SnapshotAssertion

from kdoctor.diff.model import Change, Comparison, Kind
from kdoctor.diff.render import render_diff


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


def test_terminal_lists_changes_by_kind(screen: SnapshotAssertion) -> None:
    assert render_diff(FOUND, "terminal") == screen


def test_markdown_is_tables_with_escaped_cells() -> None:
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
    assert "\n\n**Loosened" in render_diff(FOUND, "markdown")
    assert render_diff(FOUND, "markdown").endswith("\n\n- ⚠ Ask \\*why\\*.\n")


def test_only_cosmetic_changes_are_folded_in_markdown() -> None:
    changes = (change("loosened", "a"), change("cosmetic", "b"), change("moved", "c"))
    lines = render_diff(replace(FOUND, changes=changes), "markdown").splitlines()
    opened, closed = (lines.index(line) for line in ("<details><summary>Cosmetic</summary>", "</details>"))
    (row,) = (number for number, line in enumerate(lines) if line.startswith("| b "))
    assert opened < row < closed
    assert lines.count("</details>") == 1


def test_json_has_counts_changes_and_notes() -> None:
    document = json.loads(render_diff(FOUND, "json"))
    assert document["schema"] == "kdoctor/checklist-diff/v1"
    assert document["counts"] == {"loosened": 1, "tightened": 1, "moved": 0, "cosmetic": 1}
    assert document["changes"][1]["old"] is None
    assert document["notes"] == ["Ask *why*."]
