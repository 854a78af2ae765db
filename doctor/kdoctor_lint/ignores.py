"""Comments that silence a rule: ``# kdoctor: ignore[lint.no-prefetch] the data is in memory``."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kdoctor.errors import did_you_mean
from kdoctor_lint.model import Ignored, LintFinding, Rule
from kdoctor_lint.rules import RULES
from kdoctor_lint.rules import internal as own
from kdoctor_lint.source import Script

_COMMENT = re.compile(r"#\s*kdoctor:\s*ignore\b\s*(?:\[(?P<rules>[^\]]*)\])?(?P<reason>.*)", re.DOTALL)
_QUICK = "kdoctor:"


@dataclass
class Comment:
    """One ignore comment."""

    line: int
    """In the numbering of the whole."""
    column: int
    covers: int
    """The line of code that it speaks of: its own, or the next one where it stands alone."""
    text: str
    rules: tuple[str, ...]
    reason: str
    used: set[str] = field(default_factory=set)

    @property
    def whole(self) -> bool:
        """Whether it names rules and gives a reason, so that it silences them."""
        return bool(self.rules) and any(character.isalnum() for character in self.reason)


def comments(script: Script) -> list[Comment]:
    """The ignore comments of a script, in order."""
    return [comment for before, text in script.texts if _QUICK in text for comment in _comments(text, before)]


def apply(
    script: Script, found: Sequence[LintFinding], rules: Mapping[str, Rule]
) -> tuple[list[LintFinding], list[Ignored]]:
    """What is left of the findings, with those about the comments themselves; and what the comments silence."""
    given = comments(script)
    left: list[LintFinding] = []
    ignored: list[Ignored] = []
    for finding in found:
        comment = next((item for item in given if _silences(item, script, finding)), None)
        if comment is None:
            left.append(finding)
        else:
            comment.used.add(finding.rule.id)
            ignored.append(Ignored(finding=finding, reason=comment.reason))
    left += [finding for finding in _about(script, given, rules) if finding.rule.id in rules]
    return left, ignored


def _silences(comment: Comment, script: Script, finding: LintFinding) -> bool:
    if not comment.whole or not finding.rule.ignorable or finding.rule.id not in comment.rules:
        return False
    spot = finding.spot
    start, end = script.whole_line(spot, spot.line), script.whole_line(spot, spot.end_line)
    return start <= comment.line <= end or comment.covers == start


def _about(script: Script, given: Sequence[Comment], rules: Mapping[str, Rule]) -> Iterator[LintFinding]:
    for comment in given:
        if not comment.whole:
            missing = "names no rule" if not comment.rules else "gives no reason"
            example = comment.rules[0] if comment.rules else "lint.no-prefetch"
            message = f"the comment {missing}, so it silences nothing; write: # kdoctor: ignore[{example}] why"
            yield _finding(script, comment, own.IGNORE_WITHOUT_REASON, message)
            continue
        for name in comment.rules:
            if name not in RULES:
                message = f"there is no rule {name!r}{did_you_mean(name, RULES)}"
                yield _finding(script, comment, own.UNUSED_IGNORE, message)
            elif name in rules and name not in comment.used:
                yield _finding(script, comment, own.UNUSED_IGNORE, f"{name} has nothing to object to here")


def _finding(script: Script, comment: Comment, rule: Rule, message: str) -> LintFinding:
    end = comment.column + len(comment.text)
    spot = script.spot_at(comment.line, comment.column, comment.line, end)
    return LintFinding(rule=rule, spot=spot, message=message, source=script.line_of(comment.line))


def _comments(text: str, before: int) -> Iterator[Comment]:
    waiting: list[Comment] = []
    for token in _tokens(text):
        matched = _COMMENT.match(token.string) if token.type == tokenize.COMMENT else None
        if matched:
            line = token.start[0] + before
            alone = not token.line[: token.start[1]].strip()
            comment = Comment(line, token.start[1] + 1, line, token.string, _ids(matched["rules"]), _reason(matched))
            if alone:
                waiting.append(comment)
            yield comment
        elif token.type not in _BLANK:
            for comment in waiting:
                comment.covers = token.start[0] + before
            waiting = []


_BLANK = frozenset({tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE})


def _ids(listed: str | None) -> tuple[str, ...]:
    names = [name.strip() for name in (listed or "").split(",") if name.strip()]
    return tuple(name if "." in name or f"lint.{name}" not in RULES else f"lint.{name}" for name in names)


def _reason(matched: re.Match[str]) -> str:
    return matched["reason"].strip().lstrip(":-\u2013\u2014 ").strip()


def _tokens(text: str) -> Iterator[tokenize.TokenInfo]:
    try:
        yield from tokenize.generate_tokens(io.StringIO(text).readline)
    except (tokenize.TokenError, SyntaxError):
        # The tokenizer is stricter than the parser in a few corners; what came before it gave up holds.
        return
