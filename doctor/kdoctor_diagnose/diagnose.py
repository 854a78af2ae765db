"""From logs to a diagnosis."""

import time
from collections.abc import Mapping, Sequence
from functools import cache

from kdoctor.check import Check
from kdoctor.errors import UsageError
from kdoctor.failures.advice import Advice, advise
from kdoctor.failures.known import load_failures, source_link
from kdoctor.failures.tables import described
from kdoctor.smoke.scenario import Scenario
from kdoctor.text.wrap import first_sentence, shorten
from kdoctor.version import __version__
from kdoctor_diagnose import model
from kdoctor_diagnose.causes import NEAR, Group, Verdict, conclude, fits
from kdoctor_diagnose.endings import has_ended, silent
from kdoctor_diagnose.found import ErrorLine, Event, Scan
from kdoctor_diagnose.inputs import Log
from kdoctor_diagnose.line import Line
from kdoctor_diagnose.own_error import look_at, owner_of
from kdoctor_diagnose.recogniser import EXCEPTION, Recogniser
from kdoctor_diagnose.scan import scan
from kdoctor_diagnose.tracebacks import message_alone

MOST_BYTES = 16 << 30
TIMEOUT_S = 600.0
_QUOTED = 400
"""Characters of a line that are quoted."""
_TOGETHER = (
    "{}: several processes wrote it without their ranks: one may have failed while another one went on. "
    "Give each one a log, or label the lines (srun --label, mpirun --tag-output)"
)

_THREAD = "line {}: the exception ended only a thread; the program went on, and may wait for what the thread did"


@cache
def _recogniser() -> Recogniser:
    return Recogniser(load_failures().failure_modes)


def diagnose(
    logs: Sequence[Log],
    checks: Mapping[str, Check],
    scenarios: Mapping[str, Scenario],
    *,
    notes: Sequence[str] = (),
    timeout_s: float = TIMEOUT_S,
) -> model.Diagnosis:
    """The diagnosis of one job. The notes say what the caller left out.

    Raises:
        UsageError: the logs are empty, or none can be read.
    """
    found = scan(logs, _recogniser(), most_bytes=MOST_BYTES, deadline=time.monotonic() + timeout_s)
    if not any(found.sizes):
        empty = f"{found.names[0]}: the log is empty" if len(found.names) == 1 else "the logs are empty"
        raise UsageError("; ".join(found.notes) or empty, hint="Name the files that have the output of the job")
    verdict = conclude(found, load_failures())
    write = _Writer(found, checks, scenarios)
    left_out = [*notes, *found.notes]
    conclusion = _conclusion(verdict, found, left_out)
    last = [write.at(log, *tail[-1]) for log, tail in found.tails.items() if tail] if conclusion == "no-end" else []
    return model.Diagnosis(
        schema="kdoctor/diagnosis/v1",
        kdoctor=__version__,
        conclusion=conclusion,
        causes=[write.cause(group) for group in verdict.causes],
        also=[write.cause(group) for group in verdict.also],
        ruled_out=[model.RuledOut(id=name, why=why) for name, why in verdict.ruled_out.items()],
        lines=[write.place(line) for line in verdict.unknown] or last,
        own=write.own(verdict),
        silent=[model.Silence(last=write.at(*last), seconds=late) for last, late in silent(found)],
        stacks=found.stacks.groups(),
        versions=dict(sorted(found.versions.items())),
        logs=[
            model.LogSummary(name=name, lines=lines, bytes=size)
            for name, lines, size in zip(found.names, found.lines, found.sizes, strict=True)
        ],
        notes=[
            *left_out,
            *(_TOGETHER.format(found.names[log]) for log in sorted(found.together)),
            *(_THREAD.format(line.line) for line in verdict.unknown if (line.log, line.line) in found.threads),
        ],
    )


def diagnose_text(
    text: str, checks: Mapping[str, Check], scenarios: Mapping[str, Scenario], *, name: str = "text"
) -> model.Diagnosis:
    """The diagnosis of a text, such as an exception."""
    content = text.encode("utf-8", "replace")
    return diagnose([Log(name, lambda: iter([content]))], checks, scenarios)


def _headline(group: Group) -> str:
    """The symptom if the log says it in these words, else the first sentence of the cause."""
    failure, first = group.failure, group.first
    row = described(failure, first.values.get("code"))
    if row is not None:
        return row.title
    parts = map(str.casefold, failure.symptom.split("..."))
    said = " ".join(first.text.split()).casefold()
    return failure.symptom if all(part.strip() in said for part in parts) else first_sentence(failure.cause)


def _conclusion(verdict: Verdict, found: Scan, left_out: Sequence[str]) -> model.Conclusion:
    if verdict.causes:
        first = verdict.causes[0].failure
        is_known = not first.follows or first.certainty == "certain" or first.id in found.clues
        return "cause" if is_known else "consequence"
    is_stuck = any(line > found.progress.get(log, 0) for log, line in found.stacked.items())
    if verdict.unknown or is_stuck:
        return "not-recognised"
    return "not-read" if left_out else "no-failure" if has_ended(found) else "no-end"


class _Writer:
    def __init__(self, found: Scan, checks: Mapping[str, Check], scenarios: Mapping[str, Scenario]) -> None:
        self._found = found
        self._checks = checks
        self._scenarios = scenarios

    def cause(self, group: Group) -> model.Cause:
        """A cause with what to do about it."""
        failure, first = group.failure, group.first
        row = described(failure, first.values.get("code"))
        advice = advise(failure, self._checks, self._scenarios)
        return model.Cause(
            id=failure.id if row is None else f"{failure.id}_{row.code}",
            kind=failure.kind,
            symptom=_headline(group),
            cause=failure.cause if row is None else row.cause,
            certainty=group.certainty,
            reasons=group.reasons,
            against=group.against,
            alternatives=group.alternatives,
            first=self.place(first),
            count=group.count,
            ranks=list(dict.fromkeys(event.rank for event in group.events if event.rank)),
            values=first.values,
            fix=self._fix(group, advice),
            checks=list(advice.checks),
            commands=list(advice.commands),
            sources=[source_link(source) for source in failure.source],
            followed_by=[self._follower(follower) for follower in group.followers],
        )

    def own(self, verdict: Verdict) -> model.OwnError | None:
        """The program's own error, if it is the answer."""
        if verdict.causes or not verdict.unknown:
            return None
        error = verdict.unknown[0]
        told = error.text if error.is_raised else message_alone(error.text)
        # Of chained exceptions the first one is the cause, and the frames of the program may be those of the next.
        near = (item.own for item in self._found.errors if item.log == error.log and 0 <= item.line - error.line < NEAR)
        program = error.own or next(filter(None, near), None)
        owner = owner_of(told, error.file, program if error.score == EXCEPTION else None)
        text = shorten(" ".join(told.split()), _QUOTED)
        return model.OwnError(
            text=text, first=self.place(error), program=program, owner=owner, look=look_at(text, owner)
        )

    def _fix(self, group: Group, advice: Advice) -> list[model.Step]:
        versions = self._found.versions
        steps = [
            model.Step(do=fix.do, commands=fix.commands)
            for fix in group.failure.fix
            if all(package in versions and fits(versions[package], which) for package, which in fix.when.items())
        ]
        return steps[:1] or ([model.Step(do=advice.remedy)] if advice.remedy else [])

    def _follower(self, group: Group) -> model.Follower:
        place = self.place(group.first)
        return model.Follower(id=group.failure.id, symptom=_headline(group), count=group.count, first=place)

    def at(self, log: int, number: int, line: Line) -> model.Place:
        """Where a line without a failure is."""
        text = shorten(" ".join(line.text.split()), _QUOTED)
        return model.Place(log=self._found.names[log], line=number, rank=line.rank, text=text)

    def place(self, item: Event | ErrorLine) -> model.Place:
        """Where a line is."""
        return self.at(item.log, item.line, Line(getattr(item, "quote", "") or item.text, item.rank))
