"""Finds the known failures whose messages are in a text, such as a pasted message.

A text is compared without case, white space and colours, so that wrapped lines and log prefixes do not matter. Quotes
matter only in a pattern that has some. ``kdoctor diagnose`` reads logs line by line instead.
"""

import errno
import math
import os
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from kdoctor.failures.known import KnownFailure, KnownFailures
from kdoctor.failures.pattern import has_quotes, literals, readable, squeezed, weight
from kdoctor.records import record
from kdoctor.text.sanitize import clean

_LINE_EDGE = re.compile(r"^[\s>|│┃╎]+|[\s|│┃╎]+$", re.MULTILINE)
"""What mails, rich tracebacks and tables put around a line."""
_QUOTES = re.compile(r"['\"`\u00b4\u2018\u2019\u201c\u201d]+")
_IGNORED = re.compile(r"[\s\\]+")
_WORD = re.compile(r"[a-z_][a-z_0-9.]+[a-z_0-9]", re.IGNORECASE)
_PREFIX = re.compile(r"\A(?:.*?\]|\s*[\w.]*(?:Error|Exception|Warning):) ", re.DOTALL)
"""The time and place that a logger writes before a message, or the name of an error."""
_OF_THE_SYSTEM = frozenset(map(os.strerror, errno.errorcode))
"""Texts that end the messages of any program, and identify none."""
_LEAST_PART = 3
"""Words of a text that can identify a message as a part of it."""
_ANY_MESSAGE = frozenset(
    {"and", "cannot", "could", "error", "failed", "find", "for", "from", "not", "the", "that", "with", "you"}
)
"""Words that say nothing about a message."""
_NEAR, _LEAST_WORDS, _MOST_NEAR = 0.5, 3, 3
"""Share of a message's words, weighted by how rare they are, and their number, that make it a near miss."""


@record
class Match:
    """A known failure, and the message by which it was recognised."""

    known: KnownFailure
    message: str
    weight: int
    """Characters that the text and the message have in common."""


def find_matches(text: str, known: KnownFailures) -> tuple[Match, ...]:
    """The known failures with a message in the text, the most specific message first and harmless ones last.

    A text that is only a part of a message matches, too, unless it is very short.
    """
    plain = _Plain(text)
    found = [match for failure in known.failure_modes if (match := _match(failure, plain))]
    found.sort(key=lambda match: (match.known.harmless, match.known.follows, bool(match.known.table), -match.weight))
    return tuple(found)


def near_misses(text: str, known: KnownFailures) -> tuple[Match, ...]:
    """The known failures whose messages share many words with a line of the text, likeliest first."""
    candidates = [
        (failure, message, _words(message)) for failure in known.failure_modes for message in messages_of(failure)
    ]
    frequency = Counter(word for _, _, words in candidates for word in words)
    rarity = {word: math.log(1 + len(candidates) / count) for word, count in frequency.items()}
    lines = [words for line in clean(text).splitlines() if (words := _words(line))]
    best: dict[str, tuple[float, Match]] = {}
    for failure, message, words in candidates:
        total = sum(rarity[word] for word in words)
        for line in lines:
            common = words & line
            share = sum(rarity[word] for word in common) / total if total else 0.0
            enough = len(common) >= min(_LEAST_WORDS, len(words)) and len(common) > 1 and common - _ANY_MESSAGE
            if enough and share >= _NEAR and share > best.get(failure.id, (0.0, None))[0]:
                best[failure.id] = (share, Match(known=failure, message=message, weight=len(common)))
    ranked = sorted(best.values(), key=lambda pair: -pair[0])
    return tuple(match for _, match in ranked[:_MOST_NEAR])


def messages_of(failure: KnownFailure) -> Sequence[str]:
    """The messages of a failure for people: its symptom last, and ``...`` for what differs."""
    return (*map(readable, failure.messages), failure.symptom)


class _Plain:
    """A text without what does not matter."""

    def __init__(self, text: str) -> None:
        lines = _LINE_EDGE.sub("", clean(text).replace("\\n", "\n"))
        self.quoted = _squeezed(lines)
        self.unquoted = self.quoted.replace("'", "")
        parts = {lines, _PREFIX.sub("", lines, count=1)} - _OF_THE_SYSTEM
        self.parts = [_squeezed(part).replace("'", "") for part in parts if len(part.split()) >= _LEAST_PART]
        """The text, and what is left without a prefix, of which each may be a part of a message."""

    def has(self, pattern: str) -> bool:
        """Whether a message is in the text. A pattern of which a piece is missing cannot match, and is not compiled."""
        if not all(piece in self.unquoted for piece in _pieces(pattern)):
            return False
        return bool(squeezed(pattern).search(self.quoted if has_quotes(pattern) else self.unquoted))

    def is_part_of(self, message: str) -> bool:
        """Whether the text is a part of the message, also one with a prefix."""
        return any(part in _unquoted(message) for part in self.parts)


def _squeezed(text: str) -> str:
    return _QUOTES.sub("'", _IGNORED.sub("", text)).lower()


@lru_cache(maxsize=4096)
def _unquoted(message: str) -> str:
    return _Plain(message).unquoted


@lru_cache(maxsize=4096)
def _pieces(pattern: str) -> tuple[str, ...]:
    """What every text with the pattern contains, without what does not matter."""
    return tuple(_QUOTES.sub("", _IGNORED.sub("", piece)).lower() for piece in literals(pattern))


def _match(failure: KnownFailure, plain: _Plain) -> Match | None:
    """The longest message of the failure that is in the text, or that the text is a part of."""
    if any(map(plain.has, failure.unless)):
        return None
    found = [pattern for pattern in failure.messages if plain.has(pattern)]
    if found:
        longest = max(found, key=weight)
        return Match(known=failure, message=readable(longest), weight=weight(longest))
    whole = next((message for message in messages_of(failure) if plain.is_part_of(message)), None)
    return Match(known=failure, message=whole, weight=len(plain.unquoted)) if whole else None


def _words(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text))
