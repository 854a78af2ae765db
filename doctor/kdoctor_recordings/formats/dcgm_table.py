"""Reads the table that ``dcgmi diag`` prints without ``-j``, of DCGM 3 and 4.

Source: https://github.com/NVIDIA/DCGM/blob/master/dcgmi/Diag.cpp for the words of the results and the width of a line.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from kdoctor_recordings.facts import Diagnostic, Diagnostics, DiagnosticStatus
from kdoctor_recordings.formats.diagnostics import status_of
from kdoctor_recordings.formats.part import Part, Section

START = re.compile(r"\|\s*Diagnostic\s+\|\s*Result\s*\|\s*")
_FIRST = re.compile(r"[|+]-+ *\w[\w ]*? *-+[+|]-+[+|]\s*|\|\s*[A-Z][\w /]*\|\s*(?:Pass|Fail|Warn|Skip)\b.*\|\s*")
"""A row with which a part of the table may begin: a title, or a test."""
ROW = re.compile(r"[|+](?P<name>[^|+]*)[|+](?P<value>.*?)[|+]\s*")
_RESULT = re.compile(
    r"(?:GPU ?(?P<one>\d+): )?(?P<status>Pass|Fail|Warn|Skip|Not Run)"
    r"(?: - (?:All|GPUs?:? (?P<some>\d+(?:, ?\d+)*)))?(?:: (?P<why>.*))?",
    re.IGNORECASE,
)
_TITLE = re.compile(r"-+ *(?P<title>\w[\w ]*?) *-*")
_TWICE = re.compile(r"\bGPU \d+ ?(?=GPU \d+\b)|(?<=\.), GPU \d+.*")
"""A name before a message that begins with it, and messages of the same test after the first one."""
_MESSAGES = ("Warning", "Error", "Info")
_WIDTH = 45
"""Characters after which a message goes on in the next row."""


def begins(line: str) -> bool:
    """Whether the table, or a part of it, begins with this line."""
    return bool(START.fullmatch(line) or _FIRST.fullmatch(line))


@dataclass(kw_only=True)
class _Test:
    """A row of the table with the rows that belong to it."""

    name: str
    results: list[tuple[str, DiagnosticStatus]] = field(default_factory=list)
    """GPU or ``node``, and its result."""
    messages: list[list[str]] = field(default_factory=list)
    """The lines of each warning or error."""
    has_error: bool = False

    def diagnostics(self) -> Iterator[Diagnostic]:
        """The result for each GPU; that of the test if no GPU has it."""
        # A message over several rows: all but the last one are cut at the same width.
        texts = ["".join(line.ljust(_WIDTH) for line in lines).split() for lines in self.messages]
        said = [_TWICE.sub("", " ".join(words)) for words in texts if words]
        statuses = [status for subject, status in self.results if subject != "node"]
        for subject, status in self.results:
            if subject == "node" and (status in statuses or (statuses and status in ("pass", "skip"))):
                continue
            own = [text for text in said if re.search(rf"\b{subject}\b", text)] or said
            message = "; ".join(own)[:400] if status not in ("pass", "skip") else ""
            yield Diagnostic(tool="dcgmi diag", test=self.name, subject=subject, status=status, message=message)
        if self.has_error and "fail" not in dict(self.results).values():
            named = re.search(r"\bGPU \d+", " ".join(said))
            subject = named[0] if named else "node"
            message = "; ".join(said)[:400]
            yield Diagnostic(tool="dcgmi diag", test=self.name, subject=subject, status="fail", message=message)


def parse(section: Section) -> Part:
    """The result of each test for each GPU."""
    results = tuple(result for test in _tests(section.lines) for result in test.diagnostics())
    return section.part(groups=(Diagnostics(results=results),))


def _tests(lines: Sequence[str]) -> Iterator[_Test]:
    test = _Test(name="run")
    is_metadata, is_info = bool(START.fullmatch(lines[0])), False
    for line in lines:
        row = ROW.fullmatch(line.rstrip())
        if not row or line.startswith("+") or START.fullmatch(line):
            continue
        name, value = row["name"].strip(), row["value"].removeprefix(" ").rstrip()
        title = _TITLE.fullmatch(name)
        if title:
            yield test
            test = _Test(name=title["title"])
            is_metadata = title["title"] == "Metadata"
        elif is_metadata or name.startswith("-"):
            continue
        elif name.split(":")[0] in _MESSAGES:
            is_info = name.startswith("Info")
            test.has_error = test.has_error or name.startswith("Error")
            test.messages += [] if is_info else [[value]]
        elif name:
            yield test
            test = _Test(name=name, results=_results(value))
        elif _RESULT.fullmatch(value):
            test.results += _results(value)
        elif test.messages and not is_info:
            test.messages[-1].append(value)
    yield test


def _results(value: str) -> list[tuple[str, DiagnosticStatus]]:
    found = _RESULT.fullmatch(value)
    if not found:
        return [("node", "unknown")]
    status = status_of(found["status"])
    numbers = re.findall(r"\d+", found["one"] or found["some"] or "")
    return [(f"GPU {number}", status) for number in numbers] or [("node", status)]
