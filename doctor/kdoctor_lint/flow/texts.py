"""Strings, as far as the script shows them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kdoctor_lint.flow.values import UNKNOWN, External, Given, Number, Text, Value

_DIFFERS = re.compile(
    r"chief|rank|task|worker|primary|main_process|master|coordinator|host|node|proc|slurm|job|local|scratch|tmp|index"
    r"|(?<![a-z])id(?![a-z])",
    re.IGNORECASE,
)
"""Names of options and of environment variables that may differ between workers."""
_FLAGS = ("absl.flags.FLAGS.", "tensorflow.compat.v1.flags.FLAGS.", "tensorflow.flags.FLAGS.")


def given(name: str) -> Value:
    """An option or an environment variable, unless it may differ between workers."""
    return UNKNOWN if _DIFFERS.search(name) else Given(f"{{{name}}}")


def as_text(value: Value) -> Value:
    """A string, or what the user gives, or unknown."""
    if isinstance(value, External) and value.name.startswith(_FLAGS):
        return given(f"FLAGS.{value.name.rpartition('.')[2]}")
    if isinstance(value, Number) and value.value is not None:
        return Text(f"{value.value:g}")
    return value if isinstance(value, Text | Given) else UNKNOWN


def text_of(parts: Sequence[Value], between: str) -> Value:
    """Strings joined. Unknown if a part is."""
    texts = [as_text(part) for part in parts]
    shown = [text.value if isinstance(text, Text) else text.shown for text in texts if isinstance(text, Text | Given)]
    if len(shown) < len(parts):
        return UNKNOWN
    joined = between.join(shown)
    return Text(joined) if all(isinstance(text, Text) for text in texts) else Given(joined)
