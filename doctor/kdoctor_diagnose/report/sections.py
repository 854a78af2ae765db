"""What every format for people shows of a diagnosis, and in which order."""

from collections.abc import Iterator, Sequence

from kdoctor.commands.again import in_same_place
from kdoctor.report.sections import Field
from kdoctor.text.lists import counted, ranges, some
from kdoctor_diagnose.model import Against, Cause, Diagnosis, Follower, OwnError, Place, StackGroup
from kdoctor_diagnose.tracebacks import LOG_PREFIX

_FOLLOWERS = 4
_NEW = 3
_HEADINGS = {
    "consequence": "The logs show what followed a failure, and not the failure itself.",
    "not-recognised": "The job failed, and kdoctor does not know this failure.",
    "not-read": "The logs show no failure, but not all of them was read.",
    "no-end": "The logs do not show how the job ended.",
    "no-failure": "The logs show no failure.",
}
_NEXT = {
    "consequence": "Diagnose the logs of all processes together, with the kernel log (dmesg).",
    "no-end": "No line shows a failure, a result or a last epoch: look at the exit status of the job.",
}

_CONFIRMED = {"fail": "Confirmed on this machine", "pass": "Not found on this machine"}
"""What the status of a confirming check says about the cause."""


def heading(diagnosis: Diagnosis) -> str:
    """What was found, in one line."""
    first = diagnosis.first
    if diagnosis.own is not None:
        return diagnosis.own.text
    if diagnosis.conclusion == "no-failure" and any(cause.kind == "registration" for cause in diagnosis.also):
        return "The logs show no failure, but the job trained without GPUs."
    if diagnosis.conclusion == "not-recognised" and diagnosis.stacks:
        return _stuck(diagnosis.stacks)
    if first is None or diagnosis.conclusion == "consequence":
        return _HEADINGS[diagnosis.conclusion]
    return first.symptom


def read(diagnosis: Diagnosis) -> str:
    """What was read, in one line."""
    lines = sum(log.lines for log in diagnosis.logs)
    names = some([log.name for log in diagnosis.logs])
    return f"{names}: {counted(lines, 'line')}"


def place(where: Place) -> str:
    """``train.log:120 (rank 3)``."""
    rank = f" ({where.rank if not where.rank.isdecimal() else f'rank {where.rank}'})" if where.rank else ""
    return f"{where.log}:{where.line}{rank}"


_ACTIVITIES = {
    "collective": "in a collective operation",
    "data": "in the input data",
    "saving": "saving or loading",
    "compiling": "compiling",
    "start": "starting",
    "step": "in a step of the training",
    "unknown": "elsewhere",
}


def _stuck(groups: Sequence[StackGroup]) -> str:
    """Where most processes were, and where the others."""
    number = sum(len(group.processes) for group in groups)
    first, *others = groups
    most = f"{len(first.processes)} of {counted(number, 'process', 'processes')} {_ACTIVITIES[first.activity]}"
    return "; ".join([most, *(f"{_ranks(group)} {_ACTIVITIES[group.activity]}" for group in others[:_NEW])])


def _ranks(group: StackGroup) -> str:
    """``ranks 0-2, 5``, or the names of the processes."""
    if not all(name.isdecimal() for name in group.processes):
        return some(group.processes)
    return ("ranks " if len(group.processes) > 1 else "rank ") + ranges(map(int, group.processes))


def _stack_fields(groups: Sequence[StackGroup]) -> Iterator[Field]:
    """Where the processes were, and what that says about a job that does nothing."""
    for group in groups[:_FOLLOWERS]:
        program = f", from {group.program}" if group.program else ""
        yield Field(label="Stack", text=f"{_ranks(group)}: {_ACTIVITIES[group.activity]}, {group.frame}{program}")
    late = [group for group in groups[1:] if group.activity != groups[0].activity]
    most = groups and len(groups[0].processes) > sum(len(group.processes) for group in late)
    if late and most and groups[0].activity in ("collective", "step"):
        text = f"The others probably wait for {' and '.join(map(_ranks, late))}. Read its log and stack first."
        yield Field(label="Look", text=text)
    elif len({group.frame for group in groups if group.activity == "collective"}) > 1:
        yield Field(label="Look", text="All processes must call the same collective operations in the same order.")


def own_fields(own: OwnError) -> Iterator[Field]:
    """What is known about the program's own error."""
    yield Field(label="Line", text=place(own.first))
    if own.program:
        yield Field(label="In the program", text=own.program)
    owner = "not decidable from the log" if own.owner == "undecided" else f"the {own.owner}"
    yield Field(label="At fault", text=owner)
    yield Field(label="Look", text=own.look)


def fields(cause: Cause) -> Iterator[Field]:
    """What is known about a cause."""
    lines = f"; {counted(cause.count, 'line')}" if cause.count > 1 else ""
    ranks = f" of {counted(len(cause.ranks), 'process', 'processes')}" if len(cause.ranks) > 1 else ""
    yield Field(label="Line", text=f"{place(cause.first)}{lines}{ranks}")
    yield Field(label="Text", text=LOG_PREFIX.sub("... ", cause.first.text))
    if why := cause.cause.removeprefix(cause.symptom):
        yield Field(label="Cause", text=why.lstrip())
    yield Field(label="Confidence", text="; ".join([cause.certainty, *cause.reasons]))
    if cause.against:
        yield Field(label="Against it", text="; ".join(cause.against))
    if cause.alternatives:
        yield Field(label="Or", text=f"{', '.join(cause.alternatives)} (same message)")
    for step in cause.fix:
        commands = tuple(in_same_place(command, "kdoctor diagnose") for command in step.commands)
        yield Field(label="Fix", text=step.do, commands=commands)
    if cause.followed_by:
        more = len(cause.followed_by) - _FOLLOWERS
        shown = [_follower(item) for item in cause.followed_by[:_FOLLOWERS]]
        yield Field(label="Followed by", text="; ".join([*shown, *([f"{more} more"] if more > 0 else [])]))
    if cause.commands:
        yield Field(label="Check for it", text="", commands=tuple(cause.commands))
    yield Field(label="Details", text="", commands=(f"kdoctor explain {_explained(cause)}",), detail=1)
    yield Field(label="Source", text=", ".join(cause.sources), detail=1)


def _explained(cause: Cause) -> str:
    """The id of the failure; that of a code of a table is its beginning."""
    return cause.id.removesuffix(f"_{cause.values['code']}") if "code" in cause.values else cause.id


def _follower(item: Follower) -> str:
    times = f", {item.count} times" if item.count > 1 else ""
    return f"{item.id} ({place(item.first)}{times})"


def _other(cause: Cause) -> str:
    against = f", but {cause.against[0]}" if cause.against else ""
    return f"{cause.symptom} ({cause.id}, {place(cause.first)}{against})"


def notes(diagnosis: Diagnosis) -> Iterator[Field]:
    """Everything besides the cause, and what to do where none was found."""
    others = [*diagnosis.causes[1:], *diagnosis.also]
    if others:
        yield Field(label="Also in the logs", text="; ".join(map(_other, others)))
    for item in diagnosis.ruled_out:
        yield Field(label="Ruled out", text=f"{item.id}: {item.why}")
    for silence in diagnosis.silent[:_FOLLOWERS]:
        last = silence.last
        text = f"{place(last)}, {silence.seconds:.0f} s before the last line of the others: {last.text}"
        yield Field(label="Silent after", text=text)
    yield from _stack_fields(diagnosis.stacks)
    if diagnosis.against:
        yield from _new_since(diagnosis.against)
    if diagnosis.versions:
        text = ", ".join(f"{name} {version}" for name, version in diagnosis.versions.items())
        yield Field(label="Versions", text=text)
    for confirmation in diagnosis.confirmations:
        label = _CONFIRMED.get(confirmation.status, "Not checked on this machine")
        yield Field(label=label, text=f"{confirmation.check}: {confirmation.observed}")
    for note in diagnosis.notes:
        yield Field(label="Note", text=note)
    if diagnosis.conclusion == "not-recognised" and not diagnosis.own and not diagnosis.stacks:
        yield Field(label="Look for the cause on this machine", text="", commands=("kdoctor check",))
    if diagnosis.conclusion in _NEXT:
        yield Field(label="Next", text=_NEXT[diagnosis.conclusion])


def _new_since(against: Against) -> Iterator[Field]:
    """What a run has that another one had not."""
    if against.problem:
        text = f"{place(against.problem)}  {against.problem.text}"
        yield Field(label="First new problem", text=text)
    kinds = f"{counted(against.kinds, 'kind')} of lines that are not in {some(against.good)}"
    shown = "; ".join(f"{place(item)}  {item.text}" for item in against.new[:_NEW] if item != against.problem)
    yield Field(label="New", text=f"{kinds}: {shown}" if shown else kinds)
    if against.missing:
        yield Field(label="Missing", text="; ".join(f"{place(item)}  {item.text}" for item in against.missing[-_NEW:]))
    if against.versions:
        pairs = (f"{name} {then} then, {now} now" for name, (then, now) in against.versions.items())
        yield Field(label="Other versions", text="; ".join(pairs))
    for label, (then, now), unit in (("Step time", against.step_s, " s"), ("Last loss", against.loss, "")):
        if then is not None and now is not None:
            ratio = f" ({now / then:.2g} times)" if unit and then else ""
            yield Field(label=label, text=f"{then:.3g}{unit} then, {now:.3g}{unit} now{ratio}")
