"""Fixes the findings of files, until nothing is left that can be fixed."""

from collections.abc import Iterator, Mapping, Sequence

from kdoctor_lint.engine import lint_script, rules_for
from kdoctor_lint.files import find_files
from kdoctor_lint.fixes.rewrite import Placed, rewrite
from kdoctor_lint.fixes.sources import Fixed, source_parts, with_parts
from kdoctor_lint.model import Finding, Rule
from kdoctor_lint.script import Script, parse_script, read_bytes
from kdoctor_lint.settings import NO_SETTINGS, Settings
from kdoctor_lint.unreadable import UnreadableError

_MAX_ROUNDS = 8  # A fix may make another one possible, such as an import that is not used any more


def fix_files(paths: Sequence[str], rules: Mapping[str, Rule], settings: Settings, *, unsafe: bool) -> list[Fixed]:
    """The files that fixes change. They are not written. After unsafe fixes, the code may do something else."""
    files, _ = find_files(paths)
    found = (fix_file(file, rules_for(file, rules, settings), settings, unsafe=unsafe) for file in files)
    return [fixed for fixed in found if fixed is not None]


def fix_file(
    path: str, rules: Mapping[str, Rule], settings: Settings = NO_SETTINGS, *, unsafe: bool = False
) -> Fixed | None:
    """A file with its findings fixed, or None if nothing changes or a part of it cannot be parsed."""
    try:
        before = read_bytes(path)
    except UnreadableError:
        return None
    data, count = before, 0
    for _ in range(_MAX_ROUNDS):
        script = parse_script(path, data)
        if script.problems:
            return None
        findings, _ignored = lint_script(script, rules, settings)
        fixed, done = _fix_once(script, data, [item for item in findings if _applies(item, unsafe=unsafe)])
        if fixed == data or parse_script(path, fixed).problems:
            break
        data, count = fixed, count + done
    return Fixed(path=path, before=before, after=data, count=count) if data != before else None


def _applies(finding: Finding, *, unsafe: bool) -> bool:
    fix = finding.autofix
    return fix is not None and (fix.safe or unsafe)


def _fix_once(script: Script, data: bytes, findings: Sequence[Finding]) -> tuple[bytes, int]:
    if not findings:
        return data, 0
    sources = source_parts(script.path, data)
    changed: dict[int, str] = {}
    count = 0
    for before, parsed in script.texts:
        number = script.cells.index(before) if script.cells else 0
        last = before + parsed.count("\n") + 1
        edits = [
            Placed((start[0] - before, start[1]), (end[0] - before, end[1]), edit)
            for start, end, edit in _placed(script, findings)
            if before < start[0] <= last
        ]
        text, done = _fix_part(sources[number], parsed, edits) if edits else (sources[number], 0)
        if text != sources[number]:
            changed[number] = text
            count += done
    return with_parts(script.path, data, changed), count


def _placed(script: Script, findings: Sequence[Finding]) -> Iterator[Placed]:
    for finding in findings:
        if finding.autofix is not None:
            start, end = script.positions(finding.autofix.node)
            yield Placed(start, end, finding.autofix.edit)


def _fix_part(source: str, parsed: str, edits: Sequence[Placed]) -> tuple[str, int]:
    """Fix the code of a script or a cell. One with magics of IPython, which were replaced, is left alone."""
    plain = source.replace("\r\n", "\n").replace("\r", "\n")
    return rewrite(source, edits) if plain == parsed else (source, 0)
