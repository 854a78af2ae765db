"""The first part of a report for people: what was examined, and one block for each cause with its fix."""

from collections.abc import Iterator, Sequence

from kdoctor.engine.categories import is_gap
from kdoctor.engine.causes import describe_problem, relevant
from kdoctor.engine.report import Cause, Conclusion, Mark, Report, Result
from kdoctor.report.gaps import MOST_NAMED, Gaps, find_gaps
from kdoctor.report.phrases import Label, counting, describe_waiver
from kdoctor.report.sections import Block, Field
from kdoctor.text.lists import counted, some
from kdoctor.text.wrap import is_cut
from kdoctor.version import __version__


def heading(report: Report) -> str:
    """What was examined, and by which checklist."""
    return f"kdoctor {__version__}, {report.target}, checklist {report.checklist.name}"


def cause_blocks(report: Report) -> tuple[Block, ...]:
    """One block for each cause that is not for information only, in the order in which to solve them."""
    return tuple(cause_block(report, cause) for cause in relevant(report.causes, report.fail_on))


def note_blocks(report: Report) -> tuple[Block, ...]:
    """The same for the other causes, which only the full report shows."""
    shown = relevant(report.causes, report.fail_on)
    return tuple(cause_block(report, cause) for cause in report.causes if cause not in shown)


def gap_blocks(report: Report) -> tuple[Block, ...]:
    """One block for the checks that could not be judged and that no cause explains; none if there are none."""
    explained = {check for cause in report.causes for check in cause.unjudged}
    left = [result for result in report.results if result.mark is Mark.UNKNOWN and result.id not in explained]
    if not any(map(is_gap, left)):
        return ()
    gaps = find_gaps(left)
    heading = f"{counted(len(left), 'more check' if explained else 'check')} could not be judged"
    if gaps.not_recorded:
        heading = f"{heading}; not recorded: {', '.join(gaps.not_recorded)}"
    return (Block(mark=Mark.UNKNOWN, findings=(heading,), fields=tuple(_gap_fields(gaps, report))),)


def problem_blocks(report: Report) -> tuple[Block, ...]:
    """The causes and the gaps. If the run is inconclusive because of the gaps, they precede what is only a warning."""
    causes, gaps = cause_blocks(report), gap_blocks(report)
    return (*gaps, *causes) if report.verdict.conclusion is Conclusion.UNKNOWN else (*causes, *gaps)


def _gap_fields(gaps: Gaps, report: Report) -> Iterator[Field]:
    for output, number in gaps.not_printed.items():
        verb = "needs" if number == 1 else "need"
        yield Field(label=Label.NOT_JUDGED, text=f"{counted(number, 'check')} {verb} values that are not in {output}")
    reasons = list(gaps.others.items())
    for reason, checks in reasons[:MOST_NAMED]:
        yield Field(label=_named(checks), text=reason)
    if reasons[MOST_NAMED:]:
        rest = counted(len(reasons) - MOST_NAMED, "more reason")
        yield Field(label=Label.EVERY_CHECK, text=f"{rest} in the full report")
    if gaps.not_recorded and not report.interrupted:
        text = "Record all of it on that machine, or import more output (kdoctor snapshot --help)."
        yield Field(label=Label.RECORD, text=text, commands=("kdoctor snapshot -o machine.json",))


def _named(checks: Sequence[str]) -> str:
    return some(checks) if len(checks) <= MOST_NAMED else counted(len(checks), "check")


def cause_block(report: Report, cause: Cause) -> Block:
    """A cause with its fix, what it explains, and in the full report its details."""
    later = f"{Label.LATER}: " if cause.after else ""
    return Block(
        id=cause.checks[0],
        note=cause.severity.value,
        mark=Mark.WARNING if cause.after else Mark(cause.severity.value),
        findings=tuple(f"{later}{describe_problem(problem)}" for problem in cause.problems),
        fields=tuple(_cause_fields(report, cause)),
    )


def _cause_fields(report: Report, cause: Cause) -> Iterator[Field]:
    if cause.after:
        yield Field(label=Label.LATER, text=f"this matters once {some(cause.after)} passes")
    if cause.why:
        yield Field(label=Label.WHY, text=cause.why, detail=2)
    yield from _steps(report, cause)
    if cause.scope:
        yield Field(label=Label.PROBLEM_OF, text=f"the {cause.scope}")
    if also := (*cause.checks[1:], *cause.explains):
        yield Field(label=Label.ALSO_EXPLAINS, text=some(also))
    if missing := (*cause.unjudged, *cause.blocked):
        text = _named(missing)
        yield Field(label=Label.NOT_CHECKED, text=text)
    yield from _details(report, cause)


_STEP_LABELS = {"workaround": Label.WORKAROUND, "rollback": Label.CHANGED, "fix": Label.FIX}


def _steps(report: Report, cause: Cause) -> Iterator[Field]:
    """The steps of the plan that solve the cause. One that solves several causes is shown with the first."""
    shown = relevant(report.causes, report.fail_on)
    for step in report.plan:
        solved = [other for other in shown if set(step.solves) & set(other.checks)]
        own = [other for other in solved if other.fix == step.summary and set(step.commands) <= set(other.commands)]
        if cause in (own or solved)[:1]:
            yield Field(label=_STEP_LABELS[step.kind], text=step.summary, commands=step.commands)
            if step.look:
                yield Field(label=Label.LOOK, text="", commands=step.look)
    if cause not in shown:
        yield Field(label=Label.FIX, text=cause.fix, commands=(*cause.commands, *cause.look))


def _details(report: Report, cause: Cause) -> Iterator[Field]:
    """What only the full report shows, apart from what the cut end of a headline says."""
    for problem in cause.problems:
        for found in problem.findings:
            if found.observed != problem.headline:
                text = f"{found.subject}: {found.observed}" if len(problem.findings) > 1 else found.observed
                yield Field(label=Label.OBSERVED, text=text, detail=int(not is_cut(problem.headline)))
        for expected in dict.fromkeys(found.expected for found in problem.findings):
            yield Field(label=Label.EXPECTED, text=expected, detail=1)
    yield Field(label=Label.UNDO, text=cause.rollback.why, commands=cause.rollback.commands, detail=1)
    by_id = {result.id: result for result in report.results}
    for check_id in cause.checks:
        if result := by_id.get(check_id):
            yield from _waivers_and_gaps(result)
            name = f"{result.id} ({result.severity.value}): {result.title}"
            yield Field(label=Label.CHECK, text=name, detail=1)
    for source in cause.sources:
        yield Field(label=Label.SOURCE, text=source, detail=2)


def _waivers_and_gaps(result: Result) -> Iterator[Field]:
    for waiver in dict.fromkeys(judged.waiver for judged in counting(result)):
        if waiver:
            yield Field(label=Label.WAIVER, text=describe_waiver(waiver, expired=True), detail=0)
    for item in result.unjudged:
        yield Field(label=Label.NOT_JUDGED, text=f"{item.subject}: {item.reason}", detail=1)
