"""Changes documents at random. The same seed gives the same changes."""

import copy
import json
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from helpers.hostile import HOSTILE

NUMBERS = (
    "0", "-1", "1", "2", "00", "007", "1e5", "1e-05", "1e400", "-1e400", "9" * 19, "9" * 5000, "-" + "9" * 400, "0x1f",
    "0o17", "1_000", "1:30", "inf", "-inf", ".inf", "nan", ".nan", "Infinity", "NaN", "1.5", "1.", ".5", "²", "v1²",
    "٣", "3.12", "2147483648", "18446744073709551616",
)  # fmt: skip
WORDS = (
    "", " ", "null", "~", "true", "yes", "[]", "{}", "- ", ": ", "? ", "# ", "\n", "\r", "\t", "\r\n", "\x00", "\x1b[2J",
    "N/A", "[N/A]", "Unknown Error", "GPU is lost", "!!int ''", "!!bool maybe", "!!timestamp x", "!!float x",
    '"\\U00110000"', '"\\UFFFFFFFF"',
    "!!null x", "!!binary x", "!!set {a}", "!!python/object:os.system x", "&a [*a]", "*a", "<<: {a: 1}", "%YAML 9.9\n",
    "---\n", "...\n", "<<<<<<< a\n", '"', "'", "\\", "\\u0000", "\\ud800", "\ufeff", "\u2028", "\x85", "é", "日本", "🧨",
    "((((", "]]]]", "{{{{", "<a>", "</a>", "<!DOCTYPE a [<!ENTITY b 'c'>]>", "&b;", "<![CDATA[", "0000:01:00.0", "GPU 0",
    "GPU0", "extends: ", "../x.yaml", "lambda: 0", "def f(:\n", "async ", "await ", "*" * 300, "(" * 300, "-" * 300,
    "[" * 3000, "{" * 3000, "x" * 300, "%%writefile ", "!ls\n", "# noqa\n", "# kdoctor: ignore[",
    "# coding: zip\n", "undefined", "utf_7", "unicode_escape", "+AAA-", "+2AA-",
)  # fmt: skip
TOKENS: tuple[str, ...] = (*NUMBERS, *WORDS, *HOSTILE.values())

_NUMBER = re.compile(rb"\d+(?:\.\d+)?")
_WORD = re.compile(rb"[\w.:+-]+")


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _insert(data: bytes, random: Random) -> bytes:
    at = random.randint(0, len(data))
    return data[:at] + _encoded(random.choice(TOKENS)) + data[at:]


def _delete(data: bytes, random: Random) -> bytes:
    at = random.randint(0, len(data))
    return data[:at] + data[at + random.choice((1, 1, 2, 8, 64, 512)) :]


def _cut(data: bytes, random: Random) -> bytes:
    return data[: random.randint(0, len(data))]


def _flip(data: bytes, random: Random) -> bytes:
    if not data:
        return data
    at = random.randrange(len(data))
    return data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]


def _replace(pattern: re.Pattern[bytes], tokens: Sequence[str]) -> Callable[[bytes, Random], bytes]:
    def replace(data: bytes, random: Random) -> bytes:
        start = random.randint(0, len(data))
        found = pattern.search(data, start) or pattern.search(data)
        if not found:
            return _insert(data, random)
        return data[: found.start()] + _encoded(random.choice(tokens)) + data[found.end() :]

    return replace


def _lines(data: bytes, random: Random) -> bytes:
    """Repeat, remove, swap or indent lines."""
    lines = data.split(b"\n")
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    kind = random.randrange(5)
    if kind == 0:
        lines.insert(other, lines[one])
    elif kind == 1:
        del lines[one]
    elif kind == 2:
        lines[one], lines[other] = lines[other], lines[one]
    elif kind == 3:
        lines[one] = b" " * random.randrange(9) + lines[one].lstrip()
    else:
        lines[one : one + 1] = [lines[one]] * random.choice((2, 3, 40))
    return b"\n".join(lines)


def _join(data: bytes, random: Random) -> bytes:
    """A piece of the document somewhere else in it."""
    start = random.randint(0, len(data))
    piece = data[start : start + random.choice((4, 40, 400))]
    at = random.randint(0, len(data))
    return data[:at] + piece + data[at:]


_CHANGES = (
    _insert, _insert, _delete, _cut, _flip, _lines, _lines, _join,
    _replace(_NUMBER, NUMBERS), _replace(_NUMBER, NUMBERS), _replace(_WORD, TOKENS), _replace(_WORD, TOKENS),
)  # fmt: skip


def mutated(data: bytes, random: Random) -> bytes:
    """The document after one or several changes."""
    for _ in range(random.choice((1, 1, 1, 2, 3, 6))):
        data = random.choice(_CHANGES)(data, random)
    return data


_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 10**19, -(10**19), 1e308, -0.0, 1.5, "", [], {}, [None], {"": None}, {"unavailable": "x"},
    *NUMBERS[:22], *HOSTILE.values(),
)  # fmt: skip


def mutated_json(data: bytes, random: Random) -> bytes:
    """The JSON document with some of its values replaced, removed or repeated; sometimes with changed text."""
    if random.random() < 0.2:
        return mutated(data, random)
    document = json.loads(data)
    for _ in range(random.choice((1, 1, 2, 4))):
        _change(document, random)
    return json.dumps(document).encode()


def _change(document: Any, random: Random) -> None:
    node = document
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        if not keys:
            return
        key = random.choice(keys)
        below = node[key]
        if isinstance(below, dict | list) and below and random.random() < 0.9:
            node = below
            continue
        kind = random.randrange(4)
        if kind == 0:
            del node[key]
        elif kind == 1 and isinstance(node, list):
            node.insert(random.randint(0, len(node)), below)
        elif kind == 2 and isinstance(node, list):
            random.shuffle(node)
        else:
            node[key] = copy.deepcopy(random.choice(_VALUES))  # a change must not reach the value itself
        return
