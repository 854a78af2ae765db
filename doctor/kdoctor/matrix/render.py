"""Renders the answer of ``kdoctor matrix`` for a terminal, as Markdown and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from kdoctor.matrix.json import render_json
from kdoctor.matrix.model import GpuKind, KnownBad, Release
from kdoctor.matrix.requirements import Needs
from kdoctor.matrix.verdict import Verdict
from kdoctor.matrix.view import (
    View,
    asks,
    code_range,
    failure_text,
    groups,
    named,
    nccl_text,
    notes,
    python_range,
    reasons,
    shown_driver,
    shown_releases,
    span,
)
from kdoctor.matrix.ways import way_out
from kdoctor.text.canvas import PLAIN, Canvas
from kdoctor.text.sanitize import clean
from kdoctor.text.wrap import to_ascii, wrap

_OUTCOMES = {"runs": "runs", "does-not-run": "no", "unknown": "unknown"}
_COLUMNS = (("TensorFlow", 19), ("Python", 10), ("CUDA", 7), ("cuDNN", 6), ("Driver", 11), ("GPU code", 9))
_HEADINGS = ("TensorFlow", "Python", "CUDA", "cuDNN", "oldest driver", "machine code for", "Keras", "NumPy", "protobuf")
_LABEL = 11
_SHOWN_FEATURES = 6


def render(view: View, format: str, canvas: Canvas = PLAIN) -> str:  # noqa: A002 - the option's name
    """The view in one of ``FORMATS``.

    Raises:
        KeyError: unknown format.
    """
    return clean(_RENDERERS[format](view, canvas))


def _terminal(view: View, canvas: Canvas) -> str:
    lines = list(_facts(view, canvas))
    if view.needs is not None:
        lines += _needs_page(view, view.needs, canvas)
    elif view.detailed:
        lines += [*_table(view, view.verdicts, canvas), *_legend(), "", *_advice(view, canvas)]
    else:
        lines += _advice(view, canvas)
        if shown := shown_releases(view.verdicts):
            lines += ["", *_table(view, shown, canvas), *_legend()]
        lines += [*_keras(view, canvas, most=_SHOWN_FEATURES), *_groups(view, canvas)]
    text = "\n".join(lines) + "\n"
    return text if canvas.unicode else to_ascii(text)


def _facts(view: View, canvas: Canvas) -> Iterator[str]:
    for fact in view.facts:
        yield from _labelled(fact.label, f"{fact.value} ({fact.origin})", canvas)
    yield from _labelled("Matrix", f"{_matrix(view)}, {view.matrix.platform}", canvas)
    yield ""


def _matrix(view: View) -> str:
    """Its name and date, and its age where newer releases are likely."""
    text = f"{view.matrix.name}, {view.matrix.updated}"
    return (
        f"{text} ({view.age_days} days old: newer releases are missing; update keras-doctor)" if view.is_old else text
    )


def _table(view: View, verdicts: Sequence[Verdict], canvas: Canvas) -> Iterator[str]:
    names = (view.matrix.framework, *(name for name, _ in _COLUMNS[1:]))
    heading = "".join(name.ljust(width) for name, (_, width) in zip(names, _COLUMNS, strict=True))
    yield f"   {heading}{'Verdict' if view.machine else ''}".rstrip()
    for verdict in verdicts:
        cells = _cells(view, verdict.release)[: len(_COLUMNS)]
        line = "".join(text.ljust(width) for text, (_, width) in zip(cells, _COLUMNS, strict=True))
        yield f"{_mark(view, verdict):3}{line}{_outcome(view, verdict)}"
        for reason in reasons(verdict):
            yield from wrap(reason, canvas.width, first="       - ", rest="         ")


def _legend() -> Iterator[str]:
    yield "   > newest that runs, * installed. Driver: the oldest for these GPUs."


def _keras(view: View, canvas: Canvas, most: int | None = None) -> Iterator[str]:
    """What Keras does on several replicas; ``most`` limits the named features."""
    if view.keras:
        yield from ("", "Keras on several replicas, measured")
    for keras in view.keras:
        text = f"{keras.package} {keras.release}: {keras.text(view.matrix, most)}"
        yield from wrap(text, canvas.width, first="  ", rest="    ")
    if any(keras.defects for keras in view.keras):
        yield "  Details of a feature: kdoctor explain NAME"


def _groups(view: View, canvas: Canvas) -> Iterator[str]:
    """The releases that do not run, a line or two for each reason; only newer ones than the best, if there is one."""
    everything = [verdict.release for verdict in view.verdicts]
    newer = [item for item in view.verdicts if view.best is None or item.release.key > view.best.release.key]
    found = groups(newer)
    for outcome, heading in (("does-not-run", "Do not run"), ("unknown", "Not decided")):
        shown = [group for group in found if group.outcome == outcome]
        if shown:
            yield from ("", heading)
        for group in shown:
            text = f"{span(group.releases, everything)}: {group.reason.text}{failure_text(group.reason.failure)}"
            yield from wrap(text, canvas.width, first="  ", rest="    ")
    if len(everything) > len(shown_releases(view.verdicts)):
        yield from ("", "All releases with all reasons: --all")


def _outcome(view: View, verdict: Verdict) -> str:
    on_cpu = view.machine is not None and view.machine.for_cpu and verdict.outcome == "runs"
    return "on CPU" if on_cpu else _OUTCOMES[verdict.outcome]


def _mark(view: View, verdict: Verdict) -> str:
    chosen = ">" if view.best is not None and verdict.release is view.best.release else ""
    return chosen + ("*" if view.installed == verdict.release.version else "")


def _cells(view: View, release: Release) -> tuple[str, ...]:
    return (
        release.version,
        python_range(release),
        release.cuda,
        release.cudnn or "?",
        shown_driver(view, release) or "?",
        code_range(release),
        *("; ".join(_specifier(line) for line in asks(release, [name])) for name in ("keras", "numpy", "protobuf")),
    )


def _specifier(line: str) -> str:
    return line.lstrip("abcdefghijklmnopqrstuvwxyz-").strip() or "any"


def _advice(view: View, canvas: Canvas) -> Iterator[str]:
    if view.best is not None:
        on = " on the CPU (no GPU found or given)" if view.machine is not None and view.machine.for_cpu else ""
        kind = ", a pre-release, because no final release runs" if view.best.release.prerelease else ""
        yield f"Newest compatible release{on}: {named(view, view.best.release)}{kind}"
        yield from _install(view.best, canvas)
    elif view.on_cpu is not None and view.nearest is not None and view.nearest.outcome != "unknown":
        yield f"No {view.matrix.framework} in the matrix uses a GPU here. For the CPU:"
        yield f"    {view.on_cpu}"
    elif view.nearest is not None:
        near = view.nearest
        if near.outcome == "unknown":
            yield f"Inconclusive. Newest release without a known problem: {named(view, near.release)}"
        else:
            yield f"No {view.matrix.framework} in the matrix runs here. Closest: {near.release.version}"
        for reason in reasons(near):
            yield from wrap(reason, canvas.width, first="  - ", rest="    ")
        if near.outcome == "unknown":
            yield from _install(near, canvas)
    yield from _ways(view, canvas)
    for line in view.advice:
        text, found, command = line.partition(": python ")
        yield from wrap(f"{text}:" if found else line, canvas.width, first="  - ", rest="    ")
        if found:
            yield f"    python {command}"


def _ways(view: View, canvas: Canvas) -> Iterator[str]:
    way = way_out(view.matrix, view.machine, view.verdicts)
    if way is None:
        return
    yield from ("", f"To run {named(view, way.verdict.release)}: driver {way.driver} or newer")
    if way.package:
        text = f"or, on data-center GPUs, NVIDIA's forward-compatibility package {way.package} (Ubuntu commands shown):"
        yield from wrap(text, canvas.width, first="  ")
        yield from (f"    {command}" for command in way.commands)
        yield from (f"    {command}" for command in way.verdict.commands)


def _install(verdict: Verdict, canvas: Canvas) -> Iterator[str]:
    yield from (f"    {command}" for command in verdict.commands)
    for note in notes(verdict):
        yield from wrap(note, canvas.width, first="  Note: ", rest="        ")


def _needs_page(view: View, needs: Needs, canvas: Canvas) -> Iterator[str]:
    yield f"Requirements of TensorFlow {needs.release.version}"
    for label, body in _needs_rows(needs):
        yield from _labelled(label, body, canvas)
    yield from _labelled("Install", "", canvas)
    yield from (f"    {command}" for command in (view.verdicts[0].commands if view.verdicts else needs.commands))
    if needs.known_bad:
        yield from ("", "Known problems")
    for row in needs.known_bad:
        yield from wrap(_known_bad(row), canvas.width, first="  - ", rest="    ")
    yield from _keras(view, canvas)
    for verdict in view.verdicts:
        yield from ("", f"On the machine above: {_outcome(view, verdict)}")
        for text in [*reasons(verdict), *notes(verdict)]:
            yield from wrap(text, canvas.width, first="  - ", rest="    ")
    yield ""
    for source in needs.release.source:
        yield from _labelled("Source", view.matrix.citation(source) or source, canvas)
    if needs.release.inferred_from:
        yield from _labelled(
            "Inferred", f"values that were not read from it are those of {needs.release.inferred_from}", canvas
        )
    if needs.release.verified:
        yield from _labelled("Verified", needs.release.verified, canvas)


def _needs_rows(needs: Needs) -> Iterator[tuple[str, str]]:
    release = needs.release
    yield "Driver", f"{needs.oldest_driver or 'not known'} or newer (CUDA {release.cuda})"
    yield "", f"{needs.ptx_driver or 'not known'} or newer for GPUs that use PTX"
    yield "Python", python_range(release)
    yield "glibc", f"{release.glibc} or newer"
    yield "GPUs", f"with machine code: {_kinds(needs.by_machine_code)}"
    yield "", f"with PTX, compiled by the driver: {_kinds(needs.by_ptx)}"
    if needs.excluded:
        yield "", f"excluded, although it has code for them: {_kinds(needs.excluded)}"
    yield "Keras", ", ".join(asks(release, ["keras"])) or "any"
    if release.tf_keras:
        yield "Keras 2", f"tf-keras=={release.tf_keras}, with TF_USE_LEGACY_KERAS=1"
    yield "Packages", ", ".join(line for line in release.requires if not line.startswith("keras"))
    extra = ", ".join(release.and_cuda) if release.and_cuda else "no such extra: install CUDA and cuDNN on the system"
    yield "[and-cuda]", extra
    yield "cuDNN", f"built with {release.cudnn}" if release.cudnn else "not stated by the build"
    yield "NCCL", nccl_text(release)
    yield "Libraries", ", ".join(needs.sonames.values())
    if release.note:
        yield "Note", release.note


def _kinds(kinds: Sequence[GpuKind]) -> str:
    return "; ".join(f"{kind.capability} ({', '.join(kind.names[:3])})" for kind in kinds) or "none"


def _known_bad(row: KnownBad) -> str:
    versions = ", ".join(f"{name} {spec}" for name, spec in row.when.items())
    job = f", with {row.job}" if row.job else ""
    return f"{row.id} ({versions}{job}): {row.symptom}. Fix: {row.fix}."


def _labelled(label: str, body: str, canvas: Canvas) -> Iterator[str]:
    yield from wrap(body, canvas.width, first=label.ljust(_LABEL), rest=" " * _LABEL) or [label]


def _markdown(view: View, canvas: Canvas) -> str:  # noqa: ARG001 - the reader's browser wraps it
    lines = [f"## {_title(view)}", ""]
    lines += [f"- {fact.label}: {_escaped(fact.value)} ({_escaped(fact.origin)})" for fact in view.facts]
    lines += [f"- Matrix: {_escaped(_matrix(view))}, {view.matrix.platform}", ""]
    lines += _markdown_needs(view, view.needs) if view.needs else _markdown_table(view)
    return "\n".join(lines) + "\n"


def _title(view: View) -> str:
    return (
        f"Requirements of TensorFlow {view.needs.release.version}"
        if view.needs
        else f"Compatible {view.matrix.framework} releases"
    )


def _markdown_table(view: View) -> Iterator[str]:
    yield f"| | {' | '.join((view.matrix.framework, *_HEADINGS[1:]))} | verdict |"
    yield f"|{'---|' * (len(_HEADINGS) + 2)}"
    for verdict in view.verdicts:
        why = "; ".join(reasons(verdict))
        here = f"{_outcome(view, verdict)}: {why}" if why else _outcome(view, verdict)
        cells = [_mark(view, verdict), *_cells(view, verdict.release), here]
        yield f"| {' | '.join(_escaped(cell) for cell in cells)} |"
    yield from ("", r"\> newest that runs, \* installed.")
    chosen = view.best or (view.nearest if view.nearest and view.nearest.outcome == "unknown" else None)
    if chosen is not None:
        yield from ("", "```sh", *chosen.commands, "```", "")
        yield from (f"- {_escaped(note)}" for note in notes(chosen))
    yield from _markdown_keras(view)


def _markdown_needs(view: View, needs: Needs) -> Iterator[str]:
    yield from ("| | |", "|---|---|")
    yield from (f"| {label} | {_escaped(body)} |" for label, body in _needs_rows(needs))
    commands = view.verdicts[0].commands if view.verdicts else needs.commands
    yield from ("", "```sh", *commands, "```", "")
    yield from (f"- {_escaped(_known_bad(row))}" for row in needs.known_bad)
    yield from _markdown_keras(view)
    for verdict in view.verdicts:
        yield from ("", f"On the machine above: {_outcome(view, verdict)}", "")
        yield from (f"- {_escaped(text)}" for text in [*reasons(verdict), *notes(verdict)])


def _markdown_keras(view: View) -> Iterator[str]:
    if view.keras:
        yield from ("", "Keras on several replicas, measured:", "")
    for keras in view.keras:
        yield f"- {_escaped(f'{keras.package} {keras.release}: {keras.text(view.matrix)}')}"


def _escaped(text: str) -> str:
    flat = " ".join(text.split())
    return "".join(f"\\{character}" if character in r"\`*_[]<>|#~$" else character for character in flat)


_RENDERERS: Mapping[str, Callable[[View, Canvas], str]] = {
    "terminal": _terminal,
    "json": lambda view, _: render_json(view),
    "markdown": _markdown,
}
FORMATS: tuple[str, ...] = tuple(_RENDERERS)
"""Names of the formats."""
