"""Makes a log plain: without colours and what is before each line, with wrapped lines joined. It is pure."""

import re
from itertools import takewhile

from kdoctor_diagnose.line import split

SHORT = 128 * 1024
"""Bytes of a traceback with its message that are read together, and of a paste whose lines may be wrapped."""
GLOG = re.compile(rb"\b[IWEF] ?\w* .*\.(?:cc|py|h):")
"""What TensorFlow writes at the beginning of a line, which says how bad it is."""
_ESCAPES = re.compile(rb"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,200}(?:\x07|\x1b\\))")
_WHAT = re.compile(rb"(\bwhat\(\):)[ \t]*\n([^\n]*)")
"""What C++ writes before the message of an exception, if that is on the next line."""
_BEFORE = re.compile(r"(?s)\s+$|(?!.*\b[IWEF](?:\d{4}|(?<=: .)) )(?:.{0,60}(?:[:|>\])]|\s-))[ \t]")
"""How what is before each line ends, unless it is an indentation."""
_FIRST, _MOST, _NARROWEST, _SEVERAL = 12, 0.9, 60, 2
"""Lines that show what is before each, the share that has it, and from which width on several lines may be wrapped."""
_DIGITS = dict.fromkeys(map(ord, "0123456789"))


def plain(text: bytes) -> bytes:
    """The text as its program wrote it. Backspaces of old progress bars end a line, as carriage returns do."""
    text = _ESCAPES.sub(b"", text) if b"\x1b" in text else text
    text = text.replace(b"\r\n", b"\n") if b"\r\n" in text else text
    text = text.replace(b"\x08", b"\r") if b"\x08" in text else text
    text = _WHAT.sub(rb"\1 \2\n", text) if b"what():" in text else text
    before = _before_each(text.split(b"\n", _FIRST)[:_FIRST])
    if before:
        parts = re.escape(before), re.escape(before.rstrip())
        without, lines = re.subn(rb"(?m)^(?:(.{0,60}?)%b|%b$)" % parts, rb"\1", text)
        text = without if lines > max(_SEVERAL, text.count(b"\n")) * _MOST else text
    return _joined(text) if len(text) < SHORT else text


def _before_each(lines: list[bytes]) -> bytes:
    """What a quotation, a logger or a launcher wrote before each of the lines, behind a time or rank."""
    # A letter at its end keeps the space with which a line ends that is empty but for this.
    whole = [f"{line[:500].decode('utf-8', 'replace')}$" for line in lines if line.strip() and line[:1] != b"{"]
    texts = [split(line).text[:-1] for line in whole]
    common = "".join(letters[0] for letters in takewhile(lambda all_: len({*all_}) == 1, zip(*texts, strict=False)))
    found = _BEFORE.match(common) if len(texts) > any(map(str.isalpha, common)) + 1 else None
    return found[0].encode() if found else b""


def _joined(text: bytes) -> bytes:
    """The text with the lines joined that a terminal cut at its width, and empty lines in their places."""
    lines = text.decode("utf-8", "surrogateescape").split("\n")
    width = max(map(len, lines))
    full = [place for place, line in enumerate(lines[:-1]) if len(line) == width]
    breaks = {place: (lines[place][-1:] + lines[place + 1][:1]).strip() for place in full}
    cut = {lines[place].translate(_DIGITS) for place, letters in breaks.items() if letters.isalnum() and letters[1:]}
    if (
        width < _NARROWEST
        or len(cut) < _SEVERAL
        or sum(len(letters) > 1 for letters in breaks.values()) * 2 < len(full)
    ):
        return text
    for place in reversed(full):
        lines[place : place + 2] = [lines[place] + lines[place + 1], ""]
    return "\n".join(lines).encode("utf-8", "surrogateescape")
