"""What several pages share: tables, escaping."""

import re
from collections.abc import Sequence


def escaped(text: str) -> str:
    """A text without markup, which may have several lines."""
    return "".join(f"\\{character}" if character in "*_<>|[]`" else character for character in text)


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """The lines of a table."""
    lines = [f"| {' | '.join(name.replace('_', ' ') for name in columns)} |", f"|{' --- |' * len(columns)}"]
    return lines + [f"| {' | '.join(map(cell, row))} |" for row in rows]


def cell(value: object) -> str:
    """A value in a table: one line without markup."""
    text = "" if value is None else " ".join(str(value).split())
    return re.sub(r"([\\|*_`<>\[\]#])", r"\\\1", text)
