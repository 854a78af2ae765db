"""Reads the output of ``dcgmi diag -j``.

It has no stable schema, so results are found by the names of their fields. Source:
https://docs.nvidia.com/datacenter/dcgm/latest/reference/command-line-reference/dcgmi/dcgmi-diag.html.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from kdoctor.errors import UsageError
from kdoctor_recordings.facts import Diagnostic, Diagnostics, DiagnosticStatus
from kdoctor_recordings.formats.part import Part, Section

IS_DCGM = re.compile(r'"(?:DCGM (?:GPU )?Diagnostic|test_categories|test_summary)"')
_NAMES = re.compile(
    r"DCGM (?:GPU )?Diagnostic|test_categories|category|tests|name|results|test_summary|status|info|message|warnings?"
    r"|error_id|error_category|error_severity|gpu_ids?|entity_group(?:_id|s)?|entity_id|entities|serial_num|device_id"
    r"|[mM]etadata|version|Driver Version Detected|GPU Device (?:IDs|Serials)|runtime_error|aux_?[dD]ata"
)
"""The names of fields that are read, or that report no problem."""

_NAME = re.compile(r'"((?:[^"\\]|\\.)*)"\s*:')
_WORDS: tuple[tuple[DiagnosticStatus, tuple[str, ...]], ...] = (
    ("pass", ("pass", "ok", "info")),
    ("warn", ("warn", "warning")),
    ("fail", ("fail", "failed", "error", "critical")),
    ("skip", ("skip", "skipped", "not run")),
)
_STATUSES = {word: status for status, words in _WORDS for word in words}


def unknown(line: str) -> Iterator[str]:
    """The fields in a line of JSON that kdoctor does not know, each from its name to the end of the line."""
    return (line[found.start() :] for found in _NAME.finditer(line) if not _NAMES.fullmatch(found[1]))


def parse_dcgm(section: Section) -> Part:
    """The result of each test for each GPU.

    Raises:
        UsageError: it is not valid JSON.
    """
    document = _load(section)
    results = tuple(
        Diagnostic(
            tool="dcgmi diag",
            test=str(test.get("name", "a test")),
            subject=subject,
            status=status_of(result.get("status")),
            message=_message(result),
        )
        for test in _dicts(document, "results")
        for result in _items(test["results"])
        for subject in _subjects(result)
    )
    # Without results, the program names what kept it from running.
    stopped = tuple(
        Diagnostic(
            tool="dcgmi diag", test="run", subject="node", status="unknown", message=str(item["runtime_error"])[:400]
        )
        for item in _dicts(document, "runtime_error")
    )
    return section.part(groups=(Diagnostics(results=(*results, *stopped)),))


def _load(section: Section) -> Any:
    # dcgmi may print a warning before the document.
    text = "\n".join(section.lines)
    start = text.find("{")
    try:
        document, _ = json.JSONDecoder().raw_decode(text[start:])
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{section.file}: the JSON is incomplete or invalid: {error}") from error
    return document


def _dicts(value: Any, key: str) -> Iterator[Mapping[str, Any]]:
    """The objects with this key, at any depth, in order."""
    if isinstance(value, dict):
        if key in value:
            yield value
        for item in value.values():
            yield from _dicts(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _dicts(item, key)


def _items(value: Any) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def status_of(text: Any) -> DiagnosticStatus:
    """The status that a word means."""
    return _STATUSES.get(" ".join(str(text).lower().split()), "unknown")


def _subjects(result: Mapping[str, Any]) -> list[str]:
    """The GPUs: a list in one text until DCGM 3, one entity since DCGM 4."""
    if "entity_id" in result:
        return [f"{result.get('entity_group', 'GPU')} {result['entity_id']}"]
    ids = str(result.get("gpu_ids", result.get("gpu_id", ""))).split(",")
    return [f"GPU {item.strip()}" for item in ids if item.strip().isdecimal()] or ["node"]


def _message(item: Mapping[str, Any]) -> str:
    parts: list[str] = []
    for key in ("message", "messages", "warnings", "info", "error"):
        value = item.get(key)
        for part in value if isinstance(value, list) else [value]:
            text = part.get("warning") or part.get("message") if isinstance(part, dict) else part
            parts += [str(text)] if text else []
    return "; ".join(parts)[:400]
