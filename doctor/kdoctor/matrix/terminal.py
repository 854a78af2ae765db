"""The answer of ``kdoctor matrix`` on a terminal."""

from collections.abc import Iterator, Sequence

from kdoctor.matrix.advice import advise, install_commands, ways_beside
from kdoctor.matrix.needs_rows import all_rows, known_bad_line, known_bad_text, main_rows
from kdoctor.matrix.requirements import Needs
from kdoctor.matrix.verdict import Verdict
from kdoctor.matrix.view import (
    View,
    cells,
    groups,
    mark,
    matrix_text,
    notes,
    outcome_text,
    reasons,
    shown_releases,
    span,
)
from kdoctor.text.canvas import SCREEN, Canvas
from kdoctor.text.lists import counted
from kdoctor.text.wrap import command_lines, shorten, wrap

_COLUMNS = (("TensorFlow", 19), ("Python", 10), ("CUDA", 7), ("cuDNN", 6), ("Driver", 11), ("GPU code", 9))
_LABEL = 11
_AROUND_TABLE = 3
"""A blank line, the heading and the legend."""
_AROUND_PROBLEMS = 5
"""The heading of the known problems, what is left out, and how to see the rest."""

_FEWEST_ROWS = 2
_FEWEST_REASONS = 4
_SHOWN_FEATURES = 3


def render_terminal(view: View, canvas: Canvas) -> str:
    """One screen, or with ``--all`` each release with all its reasons."""
    lines = list(_facts(view, canvas))
    if view.needs is not None:
        lines += _needs_page(view, view.needs, canvas)
        lines += _verdict(view, canvas, SCREEN - sum(_rows(line, canvas) for line in lines))
        lines += _rest(view, view.needs, canvas, SCREEN - sum(_rows(line, canvas) for line in lines))
    elif view.detailed:
        lines += [*_table(view, view.verdicts, canvas, with_reasons=True), *_legend(), "", *_advice(view, canvas)]
        lines += _keras(view, canvas)
    else:
        lines += _advice(view, canvas)
        lines += _fitted(view, canvas, SCREEN - sum(_rows(line, canvas) for line in lines))
    return "\n".join(lines) + "\n"


def _rows(line: str, canvas: Canvas) -> int:
    """Rows of the screen that a line takes: a command is not wrapped."""
    return max(1, -(-len(line) // canvas.width))


def _facts(view: View, canvas: Canvas) -> Iterator[str]:
    for fact in view.facts:
        yield from _labelled(fact.label, f"{fact.value} ({fact.origin})", canvas)
    yield from _labelled("Matrix", matrix_text(view), canvas)
    yield ""


def _fitted(view: View, canvas: Canvas, room: int) -> Iterator[str]:
    """The releases that run and why others do not, then Keras, in at most ``room`` lines."""
    shown = shown_releases(view.verdicts)
    table = list(_table(view, shown, canvas))
    why = list(_groups(view, canvas))
    room -= 2  # how to see the rest
    for_why = sum(len(lines) for lines in why)
    for_table = max(room - _AROUND_TABLE - min(for_why, _FEWEST_REASONS), _FEWEST_ROWS)
    if len(table) > 1:
        # Where not all rows fit, the table begins with the release to install.
        start = next((place for place, item in enumerate(shown) if item is view.best), 0) if shown[for_table:] else 0
        rows = table[1 + start :][:for_table]
        yield from ("", table[0], *rows, *_legend())
        room -= _AROUND_TABLE + len(rows)
    left_out = 0
    for lines in why:
        if len(lines) <= room and not left_out:
            yield from lines
            room -= len(lines)
        else:
            left_out += 1
    keras = list(_keras(view, canvas))
    yield from keras if len(keras) <= room else ()
    more = f"{counted(left_out, 'more reason')} and all releases" if left_out else "All releases with all reasons"
    if left_out or len(view.verdicts) > len(table) - 1 - len(table[1:][for_table:]):
        yield from ("", f"{more}: --all")


def _table(view: View, verdicts: Sequence[Verdict], canvas: Canvas, *, with_reasons: bool = False) -> Iterator[str]:
    """The heading, then a line for each release."""
    names = (view.matrix.framework, *(name for name, _ in _COLUMNS[1:]))
    heading = "".join(name.ljust(width) for name, (_, width) in zip(names, _COLUMNS, strict=True))
    yield f"   {heading}{'Verdict' if view.machine else ''}".rstrip()
    for verdict in verdicts:
        texts = cells(view, verdict.release)[: len(_COLUMNS)]
        line = "".join(text.ljust(width) for text, (_, width) in zip(texts, _COLUMNS, strict=True))
        yield f"{mark(view, verdict):3}{line}{outcome_text(view, verdict)}"
        for reason in reasons(verdict) if with_reasons else ():
            yield from wrap(reason, canvas.width, first="       - ", rest="         ")


def _legend() -> Iterator[str]:
    yield "   > newest that runs, * installed. Driver: the oldest for these GPUs."


def _keras(view: View, canvas: Canvas) -> Iterator[str]:
    """What Keras does on several replicas."""
    if not view.keras:
        return
    yield from ("", "Keras on several replicas, measured (kdoctor explain FEATURE)")
    for keras in view.keras:
        text = f"{keras.package} {keras.release}: {keras.text(view.matrix, None if view.detailed else _SHOWN_FEATURES)}"
        yield from wrap(text, canvas.width, first="  ", rest="    ")


def _groups(view: View, canvas: Canvas) -> Iterator[list[str]]:
    """The releases that do not run, a line or two for each reason; only newer ones than the best, if there is one."""
    everything = [verdict.release for verdict in view.verdicts]
    newer = [item for item in view.verdicts if view.best is None or item.release.key > view.best.release.key]
    found = groups(newer)
    for outcome, heading in (("does-not-run", "Do not run"), ("unknown", "Not decided")):
        above = ["", heading]
        for group in found:
            if group.outcome == outcome:
                text = f"{span(group.releases, everything)}: {group.reason.text}"
                yield above + wrap(text, canvas.width, first="  ", rest="    ")
                above = []


def _advice(view: View, canvas: Canvas) -> Iterator[str]:
    for item in advise(view):
        if item.begins:
            yield ""
        first, rest = ("  - ", "    ") if item.follows else ("", "")
        yield from wrap(item.text, canvas.width, first=first, rest=rest)
        for reason in item.reasons:
            yield from wrap(reason, canvas.width, first="  - ", rest="    ")
        yield from _commands(item.commands, canvas)
        for note in item.notes:
            yield from wrap(note, canvas.width, first="  Note: ", rest="        ")


def _commands(commands: Sequence[str], canvas: Canvas) -> Iterator[str]:
    for command in commands:
        yield from command_lines(command, canvas.width)


def _needs_page(view: View, needs: Needs, canvas: Canvas) -> Iterator[str]:
    yield f"Requirements of TensorFlow {needs.release.version}{', a pre-release' if needs.release.prerelease else ''}"
    python = view.machine.python if view.machine else None
    platform = view.machine.platform if view.machine else None
    for label, body in all_rows(needs, python) if view.detailed else main_rows(needs, platform):
        yield from _labelled(label, body, canvas)
    if commands := install_commands(view, needs):
        yield "Install, for the CPU" if view.on_cpu else "Install"
        yield from _commands(commands, canvas)


def _verdict(view: View, canvas: Canvas, room: int) -> Iterator[str]:
    """The verdict on the named release with its reasons and notes, in at most ``room`` lines with those that follow."""
    for verdict in view.verdicts:
        said = [wrap(text, canvas.width, first="  - ", rest="    ") for text in [*reasons(verdict), *notes(verdict)]]
        others = [line for text in ways_beside(view) for line in wrap(text, canvas.width, first="  - ", rest="    ")]
        room -= len(others) + _AROUND_PROBLEMS
        shown = said if view.detailed else said[:1]
        for lines in said[len(shown) :]:
            if sum(map(len, shown)) + len(lines) > room:
                break
            shown = [*shown, lines]
        yield from ("", f"On the machine above: {outcome_text(view, verdict)}")
        yield from (line for lines in shown for line in lines)
        if said[len(shown) :]:
            yield f"  - and {len(said) - len(shown)} more: --all"
        yield from others


def _rest(view: View, needs: Needs, canvas: Canvas, room: int) -> Iterator[str]:
    """Known problems and what Keras does: in full with the sources, or a line each in at most ``room`` lines."""
    keras = list(_keras(view, canvas))
    if not view.detailed and len(keras) > room - _AROUND_PROBLEMS:
        keras = []
    yield from keras
    room -= len(keras) + _AROUND_PROBLEMS
    if needs.known_bad and (view.detailed or room > 0):
        yield from ("", "Known problems" if view.detailed else "Known problems (kdoctor explain ID)")
    if view.detailed:
        for row in needs.known_bad:
            yield from wrap(known_bad_text(row), canvas.width, first="  - ", rest="    ")
        yield from ("", *_sources(view, needs, canvas))
        return
    for row in needs.known_bad[: max(room, 0)]:
        yield shorten(f"  - {known_bad_line(row)}", canvas.width)
    if room > 0 and needs.known_bad[room:]:
        yield f"  and {len(needs.known_bad) - room} more"
    more = "Known problems, packages" if needs.known_bad and room <= 0 else "Packages"
    yield from ("", f"{more}, libraries, all GPUs and sources: --all")


def _sources(view: View, needs: Needs, canvas: Canvas) -> Iterator[str]:
    release = needs.release
    for source in release.source:
        yield from _labelled("Source", view.matrix.citation(source) or source, canvas)
    if release.inferred_from:
        yield from _labelled(
            "Inferred", f"values that were not read from it are those of {release.inferred_from}", canvas
        )
    if release.verified:
        yield from _labelled("Verified", release.verified, canvas)


def _labelled(label: str, body: str, canvas: Canvas) -> Iterator[str]:
    yield from wrap(body, canvas.width, first=label.ljust(_LABEL), rest=" " * _LABEL) or [label]
