"""Finds the known failures whose messages are in a text, such as a pasted log.

A template is compared without case, white space and colours, so that wrapped lines and log prefixes do not matter.
Quotes matter only in a template that has some. In a template, ``#`` is a number, version or address, and ``...`` is any
text.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kdoctor.failures.known import KnownFailure, KnownFailures, KnownMessage
from kdoctor.text.sanitize import clean

Known = KnownFailure | KnownMessage

_GAP, _VALUE = r".{0,600}?", r"[\w.:+-]{0,40}"
_LINE_EDGE = re.compile(r"^[\s>|│┃╎]+|[\s|│┃╎]+$", re.MULTILINE)
"""What mails, rich tracebacks and tables put around a line."""
_QUOTES = re.compile(r"['\"`\u00b4\u2018\u2019\u201c\u201d]+")
_IGNORED = re.compile(r"[\s\\]+")
_WORD = re.compile(r"[a-z_][a-z_0-9.]+[a-z_0-9]", re.IGNORECASE)
_LEAST_PART = 3
"""Words of a text that can identify a message as a part of it."""
_ANY_MESSAGE = frozenset(
    {"and", "cannot", "could", "error", "failed", "find", "for", "from", "not", "the", "that", "with", "you"}
)
"""Words that say nothing about a message."""
_NEAR, _LEAST_WORDS = 0.5, 3
"""Share of a message's words, weighted by how rare they are, and their number, that make it a near miss."""


@dataclass(frozen=True, kw_only=True)
class Match:
    """A known failure, and the message by which it was recognised."""

    known: Known
    message: str
    weight: int
    """Characters that the text and the message have in common."""


def find_matches(text: str, known: KnownFailures) -> tuple[Match, ...]:
    """The known failures with a message in the text, the most specific message first and harmless ones last.

    A text that is only a part of a message matches, too, unless it is very short.
    """
    plain = _Plain(text)
    found = [match for item in _all(known) if (match := _match(item, plain))]
    found.sort(key=lambda match: (isinstance(match.known, KnownMessage) and match.known.harmless, -match.weight))
    return tuple(found)


def near_misses(text: str, known: KnownFailures, most: int = 3) -> tuple[Match, ...]:
    """The known failures whose messages share many words with a line of the text, likeliest first."""
    candidates = [(item, message, _words(message)) for item in _all(known) for message in _messages(item)]
    frequency = Counter(word for _, _, words in candidates for word in words)
    rarity = {word: math.log(1 + len(candidates) / count) for word, count in frequency.items()}
    lines = [words for line in clean(text).splitlines() if (words := _words(line))]
    best: dict[int, tuple[float, Match]] = {}
    for item, message, words in candidates:
        total = sum(rarity[word] for word in words)
        for line in lines:
            common = words & line
            share = sum(rarity[word] for word in common) / total if total else 0.0
            enough = len(common) >= min(_LEAST_WORDS, len(words)) and len(common) > 1 and common - _ANY_MESSAGE
            if enough and share >= _NEAR and share > best.get(id(item), (0.0, None))[0]:
                best[id(item)] = (share, Match(known=item, message=message, weight=len(common)))
    ranked = sorted(best.values(), key=lambda pair: -pair[0])
    return tuple(match for _, match in ranked[:most])


def _all(known: KnownFailures) -> Iterator[Known]:
    yield from known.failure_modes
    yield from known.messages


def _messages(item: Known) -> Sequence[str]:
    return (*item.messages, item.symptom) if isinstance(item, KnownFailure) else item.messages


class _Plain:
    """A text without what does not matter."""

    def __init__(self, text: str) -> None:
        lines = _LINE_EDGE.sub("", clean(text).replace("\\n", "\n"))
        self.is_long_enough = len(lines.split()) >= _LEAST_PART
        self.quoted = _QUOTES.sub("'", _IGNORED.sub("", lines)).lower()
        self.unquoted = self.quoted.replace("'", "")

    def has(self, message: str) -> bool:
        """Whether the message is in the text."""
        pattern = _pattern(message)
        return bool(pattern.search(self.quoted if "'" in pattern.pattern else self.unquoted))

    def is_part_of(self, message: str) -> bool:
        """Whether the text is a part of the message."""
        return self.is_long_enough and self.unquoted in _Plain(message).unquoted


def _match(item: Known, plain: _Plain) -> Match | None:
    """The longest message of the failure that is in the text, or that the text is a part of."""
    found = [message for message in item.messages if plain.has(message)]
    if found:
        longest = max(found, key=_literal_length)
        return Match(known=item, message=longest, weight=_literal_length(longest))
    whole = next((message for message in _messages(item) if plain.is_part_of(message)), None)
    return Match(known=item, message=whole, weight=len(plain.unquoted)) if whole else None


@lru_cache(maxsize=512)
def _pattern(message: str) -> re.Pattern[str]:
    parts = (
        _VALUE.join(re.escape(_Plain(literal).quoted) for literal in piece.split("#")) for piece in message.split("...")
    )
    return re.compile(_GAP.join(parts))


def _literal_length(message: str) -> int:
    return len(_Plain(message.replace("...", "").replace("#", "")).unquoted)


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text))
