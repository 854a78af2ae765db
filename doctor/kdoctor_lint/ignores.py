"""Comments that silence a rule: ``# kdoctor: ignore[lint.no-prefetch] the data is small``, or ``# noqa: KD204``."""

import io
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kdoctor.errors import did_you_mean
from kdoctor_lint.model import Finding, Ignored, Rule
from kdoctor_lint.registry import RULES
from kdoctor_lint.rules.internal import IGNORE_WITHOUT_REASON, UNUSED_IGNORE
from kdoctor_lint.script import Script

_COMMENT = re.compile(r"#\s*kdoctor:\s*ignore\b\s*(?:\[(?P<rules>[^\]]*)\])?(?P<reason>.*)", re.DOTALL)
_NOQA = re.compile(r"#\s*noqa:\s*(?P<codes>[A-Z]+\d+(?:[\s,]+[A-Z]+\d+)*)", re.IGNORECASE)
_MARK = re.compile(r"kdoctor:|noqa:", re.IGNORECASE)
_CODES = {rule.code: rule.id for rule in RULES.values()}
_NO_CODE = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE})


@dataclass
class _Comment:
    line: int  # In the whole script
    column: int
    covers: int  # The line of code that it applies to: its own, or the next one if it is alone on its line
    text: str
    rules: list[str]
    reason: str
    used: set[str] = field(default_factory=set)

    @property
    def is_valid(self) -> bool:
        """Whether it has rules and a reason, so that it silences findings."""
        return bool(self.rules) and any(character.isalnum() for character in self.reason)


def apply(script: Script, found: Sequence[Finding], rules: Mapping[str, Rule]) -> tuple[list[Finding], list[Ignored]]:
    """The findings that are left, with those about the comments themselves, and the findings silenced by comments."""
    comments = [comment for before, text in script.texts if _MARK.search(text) for comment in _comments(text, before)]
    left: list[Finding] = []
    ignored: list[Ignored] = []
    for finding in found:
        comment = next((item for item in comments if _silences(item, script, finding)), None)
        if comment is None:
            left.append(finding)
        else:
            comment.used.add(finding.rule.id)
            ignored.append(Ignored(finding=finding, reason=comment.reason))
    for comment in comments:
        spot = script.spot_at(comment.line, comment.column, comment.line, comment.column + len(comment.text))
        for rule, message in _problems(comment, rules):
            if rule.id in rules:
                left.append(Finding(rule=rule, spot=spot, message=message, source=script.line_of(spot)))
    return left, ignored


def _silences(comment: _Comment, script: Script, finding: Finding) -> bool:
    if not comment.is_valid or not finding.rule.judge or finding.rule.id not in comment.rules:
        return False
    start = script.whole_line(finding.spot)
    end = start + finding.spot.end_line - finding.spot.line
    return start <= comment.line <= end or comment.covers == start


def _problems(comment: _Comment, rules: Mapping[str, Rule]) -> Iterator[tuple[Rule, str]]:
    if not comment.is_valid:
        missing = "reason" if comment.rules else "rule"
        example = comment.rules[0] if comment.rules else "lint.no-prefetch"
        message = f"ignore comment without a {missing} has no effect; use: # kdoctor: ignore[{example}] reason"
        yield IGNORE_WITHOUT_REASON, message
        return
    for name in comment.rules:
        if name not in RULES:
            yield UNUSED_IGNORE, f"unknown rule {name!r}{did_you_mean(name, RULES)}"
        elif name in rules and name not in comment.used:
            yield UNUSED_IGNORE, f"unused ignore comment: {name} finds nothing here"


def _comments(text: str, before: int) -> Iterator[_Comment]:
    waiting: list[_Comment] = []
    for token in _tokens(text):
        matched = _COMMENT.match(token.string) if token.type == tokenize.COMMENT else None
        line, column = token.start
        noqa = _NOQA.search(token.string) if token.type == tokenize.COMMENT else None
        if noqa:
            ids = [_CODES[code] for code in re.split(r"[\s,]+", noqa["codes"].upper()) if code in _CODES]
            if ids:
                yield _Comment(line + before, column + 1, line + before, token.string, ids, "noqa")
        if matched:
            reason = matched["reason"].strip().lstrip(":-\u2013\u2014 ").strip()
            comment = _Comment(line + before, column + 1, line + before, token.string, _ids(matched["rules"]), reason)
            if not token.line[:column].strip():
                waiting.append(comment)
            yield comment
        elif token.type not in _NO_CODE:
            for comment in waiting:
                comment.covers = line + before
            waiting = []


def _ids(listed: str | None) -> list[str]:
    names = [name.strip() for name in (listed or "").split(",") if name.strip()]
    return [_CODES.get(name, f"lint.{name}" if f"lint.{name}" in RULES else name) for name in names]


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except (tokenize.TokenError, SyntaxError):
        # The tokenizer is stricter than the parser in a few cases. Tokens before the error are valid.
        return
