"""The history as text. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Any

from kdoctor.engine.report import Conclusion, Mark
from kdoctor.history.names import series_names
from kdoctor.history.read import LEAST_FOR_TREND, NO_RUN, RECENT, Flaky, Run, Trend
from kdoctor.model import Status
from kdoctor.report.phrases import CONCLUSIONS, MARK_NAMES, STATUS_NAMES, instant
from kdoctor.text.lists import counted, grouped, some
from kdoctor.text.wrap import WIDTH, wrap

_BLOCKS = "▁▂▃▄▅▆▇█"
_ASCII = "_.-=+*#@"
_LONG = 400
"""Findings with more characters are shown in brief."""
_SHOWN = 3
"""Number of changes that are listed for a run."""
_INDENT = " " * 8
"""Below the start of a run."""

Changes = Mapping[int, Sequence[tuple[str, str, str]]]
Results = Mapping[str, Mapping[str, Any]]
"""Check id to its result in a JSON report."""


_WORDS = {conclusion.value: CONCLUSIONS[conclusion] for conclusion in Conclusion}
"""``READY`` for ``pass``, as in the report."""


def list_runs(
    runs: Sequence[Run], changes: Changes, diagnoses: Mapping[int, Sequence[str]] = MappingProxyType({})
) -> Iterator[str]:
    """Each run: number, start, verdict, duration, checklist. Below it: changes since the previous run, diagnoses.

    If the runs are of several hosts or interpreters, each has the shortest name that tells them apart.
    """
    yield from (f"{line}\n" for text in diagnoses.get(NO_RUN, ()) for line in wrap(text, first=_INDENT))
    names = series_names((run.host, run.target) for run in runs)
    for run in runs:
        start = f"{run.id:>6}  {run.started_at[:19]}  {_WORDS[run.conclusion]:<12} {run.duration_s:>7.1f} s  "
        target = "" if "--snapshot" in run.scope else names[run.host, run.target]  # the option names the recording
        what = " ".join(filter(None, (run.checklist, target, run.scope)))
        lines = wrap(what, first=start, rest=_INDENT)
        if run.before == "pass" and run.conclusion == "fail":
            lines += wrap("first failure", first=_INDENT)
        if run.id in changes:
            changed = [f"{check} {old} -> {new}" for check, old, new in changes[run.id]]
            lines += [line for change in changed[:_SHOWN] for line in wrap(change, first=_INDENT)]
            more = len(changed) - _SHOWN
            lines += [f"{_INDENT}and {counted(more, 'more change')}: kdoctor history show {run.id}"] if more > 0 else []
        lines += [line for text in diagnoses.get(run.id, ()) for line in wrap(text, first=_INDENT)]
        yield "".join(f"{line}\n" for line in lines)


def list_flaky(found: Sequence[Flaky]) -> str:
    """The flaky checks; empty if there are none."""
    if not found:
        return ""
    texts = [f"{item.check} changed {counted(item.flips, 'time')} ({item.checklist} on {item.host})" for item in found]
    lines = [line for text in texts for line in wrap(text, first="  ", rest="    ")]
    return "\n".join(["", f"Flaky in the last {RECENT} runs", *lines, ""])


def list_trends(found: Sequence[Trend], *, unicode: bool) -> str:
    """A curve for each measure with its first and last value; why there is none with too few runs."""
    curves = [item for item in found if len(item.values) >= LEAST_FOR_TREND]
    if not curves:
        most = max((len(item.values) for item in found), default=0)
        missing = (
            f"Trends need {LEAST_FOR_TREND} runs of the same checklist, interpreter and options: fewer are noise. "
            f"There {'is' if most == 1 else 'are'} {counted(most, 'run')} like the newest one."
        )
        return "\n".join(["", *wrap(missing), ""]) if most else ""
    lines = [line for item in curves for line in _curve(item, unicode=unicode)]
    return "\n".join(["", "Trends (newest run on the right)", *lines, ""])


def _curve(item: Trend, *, unicode: bool) -> list[str]:
    """On one line, or on two if it is too long."""
    curve = f"  {sparkline(item.values, unicode=unicode)}"
    line = f"{curve}  {_ends(item)}"
    return [line] if len(line) <= WIDTH else [f"  {_ends(item)}", f"  {curve}"]


def sparkline(values: Sequence[float], *, unicode: bool) -> str:
    """Eight heights from the smallest to the largest value. Equal values are in the middle."""
    marks = _BLOCKS if unicode else _ASCII
    low, high = min(values), max(values)
    if low == high:
        return marks[3] * len(values)
    return "".join(marks[min(7, int(8 * (value - low) / (high - low)))] for value in values)


def _ends(trend: Trend) -> str:
    first, last = trend.values[0], trend.values[-1]
    change = f", {100 * (last - first) / first:+.0f} %" if first else ""
    name, _, unit = trend.name.rpartition("_")
    if unit == "s":
        return f"{name}: {_milliseconds(first)} -> {_milliseconds(last)}{change}"
    return f"{name}: {first:.4g} -> {last:.4g} {unit.replace('gbs', 'GB/s')}{change}"


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.3g} ms"


_COUNTED = {
    "pass": "passed", "error": "failed", "warning": "with a warning", "info": "with a note", "skip": "skipped",
    "unknown": "unknown",
}  # fmt: skip


def show_run(report: Mapping[str, Any]) -> str:
    """One run: its verdict, everything that did not pass, and the failure policy."""
    checklist = report["checklist"]
    # A failed check of severity warning is a warning, as on the screen.
    marks = Counter(one["severity" if one["status"] == "fail" else "status"] for one in report["results"])
    counts = ", ".join(f"{marks[mark]} {word}" for mark, word in _COUNTED.items() if marks[mark])
    why = f": {report['verdict_reason']}" * (report["verdict"] != Conclusion.PASS.value)  # warnings are listed below
    lines = [
        *wrap(f"Run {report['run']}: {_WORDS[report['verdict']]}{why}", rest="  "),
        f"  Started    {instant(report['started_at'])}, {report['duration_s']:.1f} s, kdoctor {report['kdoctor']}",
        *wrap(str(report["target"]), first="  Target     ", rest=" " * 13),
        f"  Checklist  {checklist['name']}, version {checklist['version']}",
        f"  Checks     {counts}",
    ]
    solved: dict[str, str] = {}
    causes = [check for cause in report.get("causes", ()) for check in cause["checks"]]  # absent in older reports
    for result in sorted(report["results"], key=lambda result: [*causes, result["id"]].index(result["id"])):
        if result["status"] == "fail":
            lines += ["", f"{MARK_NAMES[Mark(result['severity'])]}  {result['id']}"]
            lines += wrap(result["reason"], first="  ") if result["reason"] else []
            for remedy, findings in groupby(filter(_counts, result["findings"]), itemgetter("remedy")):
                lines += [line for finding in findings for line in _finding(finding)]
                lines += _fix(remedy, solved.setdefault(str(remedy), result["id"]), result["id"])
    unknown = grouped((result["reason"], result["id"]) for result in report["results"] if result["status"] == "unknown")
    for reason, checks in unknown.items():
        lines += ["", *wrap(some(checks), first="UNKNOWN  ", rest="  "), *wrap(reason or "", first="  ")]
    lines += _waived(report)
    decisions = report.get("decisions", ())
    lines += ["", "Failure policy"] if decisions else []
    for item in decisions:
        lines += wrap(f"{item['action'].capitalize()}: {', '.join(item['checks'])}", first="  ", rest="    ")
    return "\n".join(lines) + "\n"


def _fix(remedy: Mapping[str, Any], first: str, check: str) -> list[str]:
    """The remedy, where it is of another check, too, only with the first of them."""
    if first != check:
        return [f"    Fix: as of {first}"]
    lines = wrap(f"Fix: {remedy['summary']}", first="    ", rest="      ")
    lines += [f"        {command}" for command in remedy["commands"]]
    look = [f"        {command}" for command in remedy["look"]]
    return [*lines, *(["    Look:"] if look and not lines[-1].endswith(":") else []), *look]


def _finding(finding: Mapping[str, Any]) -> list[str]:
    return [
        *wrap(f"{finding['subject']}: {_said(finding)}", first="  ", rest="    "),
        *wrap(f"Expected: {finding['expected']}", first="    ", rest="      "),
    ]


def _said(finding: Mapping[str, Any]) -> str:
    """What was observed; a list of dozens in a few words."""
    observed = str(finding["observed"])
    return observed if len(observed) <= _LONG else str(finding["brief"])


def _counts(finding: Mapping[str, Any]) -> bool:
    waiver = finding.get("waiver")
    return not finding.get("hidden") and (not waiver or bool(waiver["expired"]))


def _waived(report: Mapping[str, Any]) -> Iterator[str]:
    for result in report["results"]:
        waived = [item for item in result["findings"] if item.get("waiver") and not _counts(item)]
        if waived:
            yield from ("", f"WAIVED  {result['id']} ({result['severity']})")
        for finding in waived:
            waiver = finding["waiver"]
            yield from _finding(finding)
            until = f"Waived until {waiver['expires']} by {waiver['owner']}: {waiver['reason']}"
            yield from wrap(until, first="    ", rest="      ")


def diff_runs(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """What changed in the second run: target, versions, checks, findings, and the speed of the trainings."""
    one, other = (f"{run['run']} ({_WORDS[run['verdict']]}, {instant(run['started_at'])})" for run in (old, new))
    lines = wrap(f"Run {one} -> {other}", rest="  ")
    for line in [*_circumstances(old, new), *_checks(old, new), *_steps(old, new)] or ["nothing changed"]:
        indent = "  " + " " * (len(line) - len(line.lstrip()))
        lines += wrap(line, first=indent, rest=f"{indent}  ")
    return "\n".join(lines) + "\n"


def _circumstances(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    for name in ("target", "kdoctor", "checklist"):
        if old[name] != new[name]:
            yield f"{name}: {_plain(old[name])} -> {_plain(new[name])}"


def _plain(value: Any) -> str:
    return f"{value['name']}, version {value['version']}" if isinstance(value, Mapping) else str(value)


def _checks(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    before = {result["id"]: result for result in old["results"]}
    after = {result["id"]: result for result in new["results"]}
    # With another checklist or --select, a line for each check would hide the changes.
    yield from _in_one_run_only(before, after, old["run"])
    yield from _in_one_run_only(after, before, new["run"])
    for name in [name for name in before if name in after]:
        one, other = before[name], after[name]
        if one["status"] != other["status"]:
            yield f"{name}: {one['status']} -> {other['status']}"
        found = {item["subject"]: _said(item) for item in one["findings"]}
        now = {item["subject"]: _said(item) for item in other["findings"]}
        for subject in [*found, *(subject for subject in now if subject not in found)]:
            if found.get(subject) != now.get(subject):
                yield f"  {subject}: {found.get(subject, 'no finding')} -> {now.get(subject, 'no finding')}"


def _in_one_run_only(checks: Results, others: Results, run: int) -> Iterator[str]:
    """Number of the checks that only this run has, and those of them that failed or are unknown."""
    statuses = {name: str(result["status"]) for name, result in checks.items() if name not in others}
    if statuses:
        counts = Counter(statuses.values())
        number = ", ".join(f"{counts[status]} {STATUS_NAMES[status]}" for status in Status if counts[status])
        yield f"only in run {run}: {number}"
        for name, status in statuses.items():
            if status in ("fail", "unknown"):
                yield f"  {name}: {status}"


_NOTABLE = 0.2
"""Relative difference of step times between runs on an unchanged machine."""


def _steps(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    before = {(item["scenario"], item["case"]): item["step_s"] for item in old["trainings"]}
    for item in new["trainings"]:
        one, other = before.get((item["scenario"], item["case"])), item["step_s"]
        if one and other and abs(other - one) > _NOTABLE * one:
            share = 100 * (other - one) / one
            name = f"{item['scenario']}/{item['case']}"
            yield f"{name} step: {_milliseconds(one)} -> {_milliseconds(other)} ({share:+.0f} %)"
