"""From paths to a report."""

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from kdoctor.errors import UsageError
from kdoctor.text.lists import counted
from kdoctor_lint import ignores
from kdoctor_lint.cache import Cache, Result
from kdoctor_lint.files import find_files
from kdoctor_lint.flow.analyze import analyze
from kdoctor_lint.flow.trace import Trace, home_of
from kdoctor_lint.model import Finding, Ignored, LintReport, Rule
from kdoctor_lint.neighbours import Found, Tree
from kdoctor_lint.parallel import in_order
from kdoctor_lint.registry import RULES
from kdoctor_lint.rules.internal import UNREADABLE_FILE
from kdoctor_lint.script import Script, read_script
from kdoctor_lint.settings import NO_SETTINGS, Settings

_KERAS_2 = re.compile(
    r"TF_USE_LEGACY_KERAS|^[ \t]*([%!]|RUN )\s*pip3? install\b.*\b(keras\s*(<\s*3|==\s*2)|"
    r"tensorflow(-\w+)?\s*(<\s*2\.16|([<~=]=\s*|-)(1\.|2\.(\d|1[0-5])(?!\d))))",
    re.MULTILINE,
)
"""What a script or a notebook with Keras 2 sets, or installs."""


def lint(
    paths: Sequence[str],
    rules: Mapping[str, Rule] = RULES,
    settings: Settings = NO_SETTINGS,
    processes: int | None = None,
    cache: Cache | None = None,
) -> LintReport:
    """Lint files and folders, in several processes where that is faster. A file that cannot be read is a finding.

    Raises:
        UsageError: the paths contain no scripts or notebooks.
    """
    files, empty = find_files(paths)
    if not files:
        raise UsageError(
            f"no Python files or notebooks in {', '.join(empty)}",
            hint="Hidden folders and environments are left out. Example: kdoctor lint train.py src/",
        )
    known = {file: None if cache is None else cache.get(file, rules_for(file, rules, settings)) for file in files}
    new = [file for file, result in known.items() if result is None]
    made = in_order(partial(_lint_file, rules=rules, settings=settings), new, processes)
    for file, (result, modules) in zip(new, made, strict=True):
        known[file] = result
        if cache is not None:
            cache.put(file, result, modules)
    if cache is not None:
        cache.save()
    results = [result for result in known.values() if result is not None]
    findings = [item for found, _ in results for item in found]
    ignored = [item for _, silenced in results for item in silenced]
    notes = tuple(f"{path}: no Python files or notebooks in this folder" for path in empty)
    return LintReport(files=tuple(files), findings=tuple(findings), ignored=tuple(ignored), notes=notes)


def _lint_file(file: str, rules: Mapping[str, Rule], settings: Settings) -> tuple[Result, Sequence[Found]]:
    tree = Tree(file)
    found, ignored = lint_script(read_script(file), rules_for(file, rules, settings), settings, tree)
    # Nodes of the code are for fixes. Without them, the file can be forgotten.
    silenced = [replace(item, finding=item.finding.without_code()) for item in ignored]
    return ([item.without_code() for item in once_each(found)], silenced), list(tree.searched)


def once_each(findings: Sequence[Finding]) -> list[Finding]:
    """The findings of a file, with the first one only of those that a rule reports once."""
    groups: dict[object, list[Finding]] = {}
    for item in findings:
        groups.setdefault((item.rule.id, item.message) if item.rule.once else id(item), []).append(item)
    return [_with_others(*group) for group in groups.values()]


def _with_others(first: Finding, *others: Finding) -> Finding:
    lines = {(item.spot.cell, item.spot.line) for item in others} - {(first.spot.cell, first.spot.line)}
    more = f" (and on {counted(len(lines), 'more line')})" if lines else ""
    fixes = [item.autofix for item in (first, *others) if item.autofix is not None]
    return replace(first, message=first.message + more, autofix=fixes[0] if fixes else None)


def rules_for(file: str, rules: Mapping[str, Rule], settings: Settings) -> Mapping[str, Rule]:
    """The rules that apply to a file."""
    left_out = settings.ignored_in(file)
    return {name: rule for name, rule in rules.items() if name not in left_out}


def lint_script(
    script: Script, rules: Mapping[str, Rule], settings: Settings = NO_SETTINGS, tree: Tree | None = None
) -> tuple[list[Finding], list[Ignored]]:
    """The findings of a script or notebook by line, and those that its comments silence."""
    found = list(script.problems)
    code = script.code
    if any(word in code for rule in rules.values() if rule.judge for word in rule.words):
        try:
            programs = [script.body, *script.written.values()]
            legacy, near = bool(_KERAS_2.search("\n".join(script.lines))), tree or Tree(script.path)
            near.written = {name: ast.Module(body, []) for name, body in script.written.items()}
            start = partial(analyze, legacy=legacy, neighbours=near, targets=settings.targets)
            cells = script.body if script.cells or code.startswith("# Databricks notebook") else None
            traces = [start(one, entry=settings.entry or (None if one is cells else "")) for one in programs]
            found += [finding for trace in traces for finding in _judged(script, trace, rules)]
        except Exception as error:  # noqa: BLE001 - one file never takes the results of the others
            found.append(_unanalyzed(script, error))
    left, ignored = ignores.apply(script, found, rules)
    left.sort(key=lambda item: (item.spot.cell or 0, item.spot.line, item.spot.column, item.rule.id))
    return left, ignored


def _unanalyzed(script: Script, error: Exception) -> Finding:
    message, fix = f"cannot be analyzed ({type(error).__name__}: {error})", "Leave this file out, and report the error."
    if isinstance(error, RecursionError):
        message = "code is nested too deeply to be analyzed"
        fix = "Split the expression or the block that is nested."
    return Finding(rule=UNREADABLE_FILE, spot=script.spot_at(1, 1, 1, 1), message=message, own_fix=fix)


def _judged(script: Script, trace: Trace, rules: Mapping[str, Rule]) -> Iterator[Finding]:
    for rule in rules.values():
        found: dict[tuple[int | None, int, int], Finding] = {}
        for node, message, *fixes in rule.judge(trace) if rule.judge else ():
            home = home_of(node)
            shown = trace.sites.get(id(home)) if home is not None else node
            if shown is None:
                continue
            spot = script.spot(shown)
            autofix = fixes[0] if fixes and shown is node else None
            finding = Finding(rule=rule, spot=spot, message=message, source=script.line_of(spot), autofix=autofix)
            found.setdefault((spot.cell, spot.line, spot.column), finding)
        yield from found.values()
