"""Reads messages of NVIDIA's tools: of their services in the journal, and of DCGM's health watch.

Sources: https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html;
https://docs.nvidia.com/datacenter/dcgm/latest/user-guide/feature-overview.html#background-health-checks.
"""

import re
from collections.abc import Iterator, Sequence

from kdoctor_recordings.facts import Diagnostic, Diagnostics, DiagnosticStatus
from kdoctor_recordings.formats.part import Part, Section

_FABRIC = "fabric manager"
_PERSISTENCE = "nvidia-persistenced"
_MISMATCH = re.compile(r"(?i:fabric ?manager).*(?:version mismatch|don't match|does(?:n't| not) match)")
_STATES: tuple[tuple[DiagnosticStatus, re.Pattern[str]], ...] = (
    ("skip", re.compile(r"NV_WARN_NOTHING_TO_DO|No NVSwitch(?:es)? (?:found|detected)", re.IGNORECASE)),
    ("fail", re.compile(r"nvidia-fabricmanager\.service(?::.*code=(?:exited|dumped|killed)| failed because)")),
    ("fail", re.compile(r"nvidia-fabricmanager\.service: Failed with|Failed to start .*(?i:fabric ?manager)")),
    ("fail", re.compile(r"ExecStart=\S*nv-fabricmanager .*status=[1-9]")),
    ("fail", re.compile(r'(?i:nv-?fabricmanager|Fabric Manager)\S*"?.* failed! Exit code')),
    ("fail", _MISMATCH),
    ("pass", re.compile(r"Main PID: \d+ \(nv-fabricmanage")),
    ("pass", re.compile(r'Started (?:"Nvidia Fabric Manager"|nvidia-fabricmanager|NVIDIA fabric manager service)')),
    ("fail", re.compile(r'Stopped (?:"Nvidia Fabric Manager"|nvidia-fabricmanager|NVIDIA fabric manager service)')),
)
"""What a line says about the service. Of several lines the last one counts, except that a machine without NVSwitches
has nothing to manage."""
_PERSISTENCE_STATES: tuple[tuple[DiagnosticStatus, re.Pattern[str]], ...] = (
    ("warn", re.compile(r"Failed to query NVIDIA devices|Failed to start (?:nvidia-persistenced|NVIDIA Persistence)")),
    ("warn", re.compile(r"nvidia-persistenced\.service: Failed with")),
    ("pass", re.compile(r"nvidia-persistenced(?:\[\d+\])?: device [\da-f:.]+ - registered|Started NVIDIA Persistence")),
)
"""Without the device files of the driver, the daemon does not start. A GPU that it registered was opened."""
_SERVICES = {_FABRIC: _STATES, _PERSISTENCE: _PERSISTENCE_STATES}
_HEALTH = re.compile(
    r"(?:Detected an? )?(?P<word>WARNING|FAILURE|FAIL|ERROR)\w* in health system (?P<system>[\w ]+?): '?(?P<message>.*)"
)
_ROW = re.compile(
    r"(?P<system>[A-Z][\w ]*?) system:? *(?:\|)? *(?P<word>Warning|Failure|Fail|Error)\b[ -]*(?P<message>.*)"
)
_OVERALL = re.compile(r"\|\s*Overall Health\b[:|\s]*(?P<word>\w+)")
_GPU = re.compile(r"\bGPU(?: ID)?:? ?(?P<number>\d+)\b")
_GPU_ROW = re.compile(r"\|\s*(?:GPU(?: ID)?:?\s*|->\s*)?(?P<number>\d+)\s*\|")
_OF_SERVICE = re.compile(r"fabricmanager|persistence", re.IGNORECASE)
_BORDER = re.compile(r"[|+=-]+")
_LONGEST = 400


def begins(line: str) -> bool:
    """Whether the line is such a message, or the first row of such a table."""
    return bool(_HEALTH.search(line) or _OVERALL.match(line) or any(_state(tool, line) for tool in _SERVICES))


def is_read(line: str) -> bool:
    """Whether the line is read, or is a part of the table of ``dcgmi health``."""
    return begins(line) or line.startswith(("|", "+")) or bool(_OF_SERVICE.search(line))


def parse(section: Section) -> Part:
    """What the messages say about the services and about the health of each GPU."""
    services = [result for tool in _SERVICES for result in _service(tool, section.lines)]
    results = [*services, *_watched(section.lines), *_table(section.lines)]
    return section.part(groups=(Diagnostics(results=tuple(dict.fromkeys(results))),))


def _state(tool: str, line: str) -> DiagnosticStatus | None:
    if not any(word in line for word in ("abric", "NV_WARN", "NVSwitch", "ersistence", "NVIDIA devices")):
        return None
    return next((status for status, pattern in _SERVICES[tool] if pattern.search(line)), None)


def _service(tool: str, lines: Sequence[str]) -> Iterator[Diagnostic]:
    states = [(state, line) for line in lines if (state := _state(tool, line))]
    if not states:
        return
    idle = next(((state, line) for state, line in states if state == "skip"), None)
    status, line = idle or states[-1]
    differing = next((text for state, text in states if state == status and _MISMATCH.search(text)), None)
    message = "no NVSwitch, so there is nothing to manage" if idle else (differing or line).strip()[:_LONGEST]
    yield Diagnostic(
        tool=tool,
        test="version check against the driver" if differing else "service",
        subject=tool if tool == _FABRIC else "node",
        status="pass" if idle else status,
        message=message,
    )


def _watched(lines: Sequence[str]) -> Iterator[Diagnostic]:
    for found in filter(None, map(_HEALTH.search, lines)):
        yield _of_health(found["system"], found["word"], found["message"].strip("' "), None)


def _of_health(system: str, word: str, message: str, number: str | None) -> Diagnostic:
    named = _GPU.search(message)
    subject = f"GPU {named['number']}" if named else f"GPU {number}" if number else "node"
    status: DiagnosticStatus = "warn" if word.lower() == "warning" else "fail"
    return Diagnostic(tool="dcgmi health", test=system, subject=subject, status=status, message=message[:_LONGEST])


def _table(lines: Sequence[str]) -> Iterator[Diagnostic]:
    """The rows of ``dcgmi health -c``. A message goes on in the rows below it."""
    start = next((place for place, line in enumerate(lines) if _OVERALL.match(line)), None)
    if start is None:
        return
    number: str | None = None
    texts: list[tuple[str | None, str]] = []
    for line in lines[start + 1 :]:
        row = _GPU_ROW.match(line)
        number = row["number"] if row else number
        text = " ".join(_BORDER.sub(" ", line).split())
        if _ROW.search(line):
            texts.append((number, line.strip("| ")))
        elif texts and text and not row:
            texts[-1] = (texts[-1][0], f"{texts[-1][1]} {text}")
    for owner, text in texts:
        found = _ROW.search(" ".join(text.split()))
        if found:
            yield _of_health(found["system"], found["word"], found["message"].strip("| -"), owner)
    overall = _OVERALL.match(lines[start])
    if overall and overall["word"].lower() == "healthy":
        yield Diagnostic(tool="dcgmi health", test="overall", subject="node", status="pass")
    elif not texts:
        yield Diagnostic(tool="dcgmi health", test="overall", subject="node", status="unknown")
