"""From paths to a report."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kdoctor.errors import UsageError
from kdoctor_lint import ignores
from kdoctor_lint.discover import files_of
from kdoctor_lint.flow.read import read
from kdoctor_lint.flow.trace import Trace
from kdoctor_lint.model import Ignored, LintFinding, LintReport, Rule
from kdoctor_lint.rules import RULES
from kdoctor_lint.rules import internal as own
from kdoctor_lint.source import Script, all_code, read_script

_WORDS = ("distribute", "Strategy", "multi_gpu_model", "list_local_devices")
"""A script that holds none of them gives no rule anything to object to."""


def lint(paths: Sequence[str], rules: Mapping[str, Rule] = RULES) -> LintReport:
    """Look at files and folders; one that cannot be read is told, and the rest goes on.

    Raises:
        UsageError: there is nothing to look at.
    """
    files, empty = files_of(paths)
    if not files:
        raise UsageError(
            f"there is no Python file and no notebook in {', '.join(empty)}",
            hint="Name files or folders: kdoctor lint train.py src/",
        )
    findings: list[LintFinding] = []
    ignored: list[Ignored] = []
    with _no_collection():
        for file in files:
            found, silenced = lint_script(read_script(file), rules)
            findings += found
            ignored += silenced
    notes = tuple(f"{path}: no Python file and no notebook in this folder" for path in empty)
    return LintReport(files=tuple(files), findings=tuple(findings), ignored=tuple(ignored), notes=notes)


def lint_script(script: Script, rules: Mapping[str, Rule]) -> tuple[list[LintFinding], list[Ignored]]:
    """What there is to say about one script or notebook, by line; and what its comments silence."""
    found = list(script.problems)
    trace = _trace(script, found)
    if trace is not None:
        found += _judged(script, trace, rules)
    left, ignored = ignores.apply(script, found, rules)
    left.sort(key=lambda item: (item.spot.cell or 0, item.spot.line, item.spot.column, item.rule.id))
    return left, ignored


def _trace(script: Script, found: list[LintFinding]) -> Trace | None:
    code = all_code(script.texts)
    if not any(word in code for word in _WORDS):
        return None
    try:
        return read(script.body, legacy="TF_USE_LEGACY_KERAS" in code)
    except RecursionError:
        spot = script.spot_at(1, 1, 1, 1)
        message = "its code is nested too deeply to be followed"
        found.append(LintFinding(rule=own.UNREADABLE_FILE, spot=spot, message=message))
        return None


def _judged(script: Script, trace: Trace, rules: Mapping[str, Rule]) -> Iterator[LintFinding]:
    for rule in rules.values():
        if rule.judge is None:
            continue
        told: set[tuple[int | None, int, int]] = set()
        for hit in rule.judge(trace):
            spot = script.spot(hit.node)
            if (spot.cell, spot.line, spot.column) not in told:
                told.add((spot.cell, spot.line, spot.column))
                source = script.line_of(script.whole_line(spot, spot.line))
                yield LintFinding(rule=rule, spot=spot, message=hit.message, source=source)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Trees are large and hold no cycles: looking for some takes most of the time that parsing takes."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
