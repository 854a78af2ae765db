"""What small functions give that a script computes its sizes and paths with."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kdoctor_lint.flow.arguments import Arguments
from kdoctor_lint.flow.values import UNKNOWN, Counted, Many, Number, Text, Value


def _range(given: Arguments) -> Value:
    count = given.args[-1] if given.args else UNKNOWN
    return Counted(count) if isinstance(count, Number) and len(given.args) == 1 else UNKNOWN


def _len(given: Arguments) -> Value:
    value = given.args[0] if given.args else UNKNOWN
    return Number(len(value.items)) if isinstance(value, Many) else UNKNOWN


def _same(given: Arguments) -> Value:
    value = given.args[0] if given.args else UNKNOWN
    return value if isinstance(value, Number | Text | Many | Counted) else UNKNOWN


def _joined(given: Arguments) -> Value:
    if all(isinstance(value, Text) for value in given.args) and not given.spread:
        return Text("/".join(value.value for value in given.args if isinstance(value, Text)))
    return UNKNOWN


KNOWN_FUNCTIONS: Mapping[str, Callable[[Arguments], Value]] = {
    "builtins.range": _range,
    "builtins.len": _len,
    "builtins.int": _same,
    "builtins.float": _same,
    "builtins.str": _same,
    "builtins.list": _same,
    "builtins.tuple": _same,
    "os.path.join": _joined,
    "pathlib.Path": _joined,
}
