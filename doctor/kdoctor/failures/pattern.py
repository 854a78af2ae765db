r"""The patterns by which a message is recognised: regular expressions in which nothing can take long.

A pattern describes a part of one line. It is a regular expression with named groups, with these rules, which
tests/helpers/patterns.py checks: every repetition is bounded or is one of ``\d+``, ``\w+``, ``\S+`` and ``[...]+``, no
repetition contains another one, alternatives are in a group, and outside of groups stands a literal text, by which a
log is searched for it.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

_TOKEN = re.compile(
    r"(?P<escape>\\.)|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<open>\((?:\?(?:P<\w+>|P=\w+|:|=|!|<[=!]))?)|(?P<close>\))"
    r"|(?P<repeat>(?:[*+?]|\{\d*,?\d*\})\??)|(?P<special>[.^$|])|(?P<literal>[^\\\[\](){}*+?.^$|])",
    re.DOTALL,
)
_QUOTES = "'\"`"
_CLASSES = frozenset("dDwWsSbBAZ")


def tokens(pattern: str) -> Iterator[tuple[str, str]]:
    """The parts of a regular expression with their kinds: the names of the groups of the tokenizer.

    Raises:
        ValueError: it has a part that is not one.
    """
    place = 0
    while place < len(pattern):
        found = _TOKEN.match(pattern, place)
        if found is None or found.lastgroup is None:
            raise ValueError(f"unexpected {pattern[place:][:10]!r}")
        yield found.lastgroup, found[0]
        place = found.end()


@lru_cache(maxsize=4096)
def literals(pattern: str) -> tuple[str, ...]:
    """The texts that are in every line with the pattern, in order."""
    found: list[str] = []
    current = ""
    depth = 0
    for kind, text in [*tokens(pattern), ("special", "")]:
        is_letter = depth == 0 and (kind == "literal" or (kind == "escape" and text[1] not in _CLASSES))
        if is_letter:
            current += text[-1]
            continue
        if kind == "repeat" and depth == 0:
            current = current[:-1]
        found += [current] if current else []
        current = ""
        depth += (kind == "open") - (kind == "close")
    return tuple(found)


@lru_cache(maxsize=4096)
def weight(pattern: str) -> int:
    """How specific a pattern is: the number of its literal characters."""
    return sum(len(text.replace(" ", "")) for text in literals(pattern))


@lru_cache(maxsize=4096)
def squeezed(pattern: str) -> re.Pattern[str]:
    """The pattern for a text without white space, backslashes and quotes, in lower case or not.

    It recognises a message that was wrapped, quoted or pasted without its punctuation. Quotes matter only in a pattern
    that has some.
    """
    parts: list[str] = []
    quoted = has_quotes(pattern)
    dropped = False
    for kind, text in tokens(pattern):
        is_quote = kind in ("literal", "escape") and text[-1] in _QUOTES
        if kind == "repeat" and dropped:
            continue
        dropped = text.isspace() or text in ("^", "$", r"\b") or (is_quote and not quoted)
        if is_quote and quoted:
            parts.append("'")
        elif kind == "repeat" and text in ("+", "+?"):
            parts.append("{1,200}?")
        elif not dropped:
            parts.append(text)
    return re.compile("".join(parts), re.IGNORECASE)


@lru_cache(maxsize=4096)
def has_quotes(pattern: str) -> bool:
    """Whether a pattern contains a quote outside of sets."""
    return any(kind in ("literal", "escape") and text[-1] in _QUOTES for kind, text in tokens(pattern))


@lru_cache(maxsize=4096)
def readable(pattern: str) -> str:
    """The pattern as a message for people: ``...`` for what differs."""
    shown: list[str] = []
    depth = 0
    for kind, text in tokens(pattern):
        if kind == "open":
            shown += ["..."] if depth == 0 else []
            depth += 1
        elif kind == "close":
            depth -= 1
        elif depth == 0 and kind != "repeat":
            is_letter = kind == "literal" or (kind == "escape" and text[1] not in _CLASSES)
            shown.append(text[-1] if is_letter else "" if text in ("^", "$", r"\b") else "...")
    return re.sub(r"(?:\.\.\.)+", "...", "".join(shown)).strip()
