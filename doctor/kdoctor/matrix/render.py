"""Writes the view for a terminal, for programs and as Markdown. Pure: the same view gives the same text."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kdoctor import __version__
from kdoctor.matrix.document import cited
from kdoctor.matrix.model import GpuKind, Release
from kdoctor.matrix.requirements import Needs
from kdoctor.matrix.verdict import Reason, Verdict
from kdoctor.matrix.view import View, asks, code_range, nccl_words, notes, python_range, reasons
from kdoctor.text.canvas import PLAIN, Canvas
from kdoctor.text.sanitize import clean

SCHEMA = "kdoctor/matrix-answer/v1"
"""Of the JSON form. Keys are added within a version; their meaning changes only with it."""

_WORDS = {"runs": "runs", "does-not-run": "no", "unknown": "unknown"}
_COLUMNS = (("TensorFlow", 19), ("Python", 10), ("CUDA", 7), ("cuDNN", 6), ("Driver", 11), ("GPU code", 9))
_HEADINGS = ("TensorFlow", "Python", "CUDA", "cuDNN", "oldest driver", "machine code for", "Keras", "NumPy", "protobuf")
_LABEL = 11


def render(view: View, format: str, canvas: Canvas = PLAIN) -> str:  # noqa: A002 - the option's name
    """The view in a format of ``FORMATS``.

    Raises:
        KeyError: there is no such format.
    """
    return clean(_RENDERERS[format](view, canvas))


def _terminal(view: View, canvas: Canvas) -> str:
    lines = list(_facts(view, canvas))
    if view.needs is not None:
        lines += _needs_page(view, view.needs, canvas)
    else:
        lines += _table(view, canvas)
        lines += _advice(view, canvas)
    text = "\n".join(lines) + "\n"
    return text if canvas.unicode else text.encode("ascii", "backslashreplace").decode("ascii")


def _facts(view: View, canvas: Canvas) -> Iterator[str]:
    for fact in view.facts:
        yield from _labelled(fact.label, f"{fact.value} ({fact.origin})", canvas)
    yield from _labelled("Matrix", f"{view.matrix.name}, of {view.matrix.updated}, {view.matrix.platform}", canvas)
    yield ""


def _table(view: View, canvas: Canvas) -> Iterator[str]:
    heading = "".join(name.ljust(width) for name, width in _COLUMNS)
    yield f"   {heading}{'Here' if view.machine else ''}".rstrip()
    for verdict in view.verdicts:
        release = verdict.release
        cells = _cells(view, release)[: len(_COLUMNS)]
        line = "".join(text.ljust(width) for text, (_, width) in zip(cells, _COLUMNS, strict=True))
        yield f"{_mark(view, verdict):3}{line}{_word(view, verdict)}"
        for reason in reasons(verdict):
            yield from _wrapped(reason, canvas, first="       - ", rest="         ")
    yield ""
    yield "   > the newest that runs, * installed. Driver: the oldest that runs its CUDA."
    yield "   GPU code: compute capabilities with machine code; newer ones by PTX."


def _word(view: View, verdict: Verdict) -> str:
    on_cpu = view.machine is not None and view.machine.for_cpu and verdict.outcome == "runs"
    return "on CPU" if on_cpu else _WORDS[verdict.outcome]


def _mark(view: View, verdict: Verdict) -> str:
    chosen = ">" if view.best is not None and verdict.release is view.best.release else ""
    return chosen + ("*" if view.installed == verdict.release.version else "")


def _cells(view: View, release: Release) -> tuple[str, ...]:
    return (
        release.version,
        python_range(release),
        release.cuda,
        release.cudnn or "?",
        view.matrix.oldest_driver(release.cuda) or "?",
        code_range(release),
        *("; ".join(_specifier(line) for line in asks(release, [name])) for name in ("keras", "numpy", "protobuf")),
    )


def _specifier(line: str) -> str:
    return line.lstrip("abcdefghijklmnopqrstuvwxyz-").strip() or "any"


def _advice(view: View, canvas: Canvas) -> Iterator[str]:
    yield ""
    if view.best is not None:
        on = " on the CPU (no GPU was found or named)" if view.machine is not None and view.machine.for_cpu else ""
        yield f"Newest that runs{on}: TensorFlow {view.best.release.version}"
        yield from _install(view.best, canvas)
    elif view.nearest is not None:
        near = view.nearest
        if near.outcome == "unknown":
            yield f"Not decided. TensorFlow {near.release.version} is the newest that nothing speaks against."
        else:
            yield f"No TensorFlow of the matrix runs here. Nearest is {near.release.version}:"
        for reason in reasons(near):
            yield from _wrapped(reason, canvas, first="  - ", rest="    ")
        if near.outcome == "unknown":
            yield from _install(near, canvas)


def _install(verdict: Verdict, canvas: Canvas) -> Iterator[str]:
    yield f"    {verdict.command}"
    for note in notes(verdict):
        yield from _wrapped(note, canvas, first="  Note: ", rest="        ")


def _needs_page(view: View, needs: Needs, canvas: Canvas) -> Iterator[str]:
    yield f"TensorFlow {needs.release.version} needs"
    for label, body in _needs_rows(needs):
        yield from _labelled(label, body, canvas)
    yield from _labelled("Install", "", canvas)
    yield f"    {view.verdicts[0].command if view.verdicts else needs.command}"
    if needs.known_bad:
        yield from ("", "Known to go wrong with it")
    for row in needs.known_bad:
        yield from _wrapped(_bad_words(row), canvas, first="  - ", rest="    ")
    for verdict in view.verdicts:
        yield from ("", f"On the machine above: {_word(view, verdict)}")
        for text in [*reasons(verdict), *notes(verdict)]:
            yield from _wrapped(text, canvas, first="  - ", rest="    ")
    yield ""
    for source in needs.release.source:
        yield from _labelled("Source", cited(source, view.matrix.sources) or source, canvas)
    if needs.release.inferred_from:
        yield from _labelled("Inferred", f"what was not read of it is that of {needs.release.inferred_from}", canvas)
    if needs.release.verified:
        yield from _labelled("Verified", needs.release.verified, canvas)


def _needs_rows(needs: Needs) -> Iterator[tuple[str, str]]:
    release = needs.release
    yield "Driver", f"{needs.oldest_driver or 'not known'} or newer (CUDA {release.cuda})"
    yield "", f"{needs.ptx_driver or 'not known'} or newer where a GPU runs it by PTX"
    yield "Python", python_range(release)
    yield "glibc", f"{release.glibc} or newer"
    yield "GPUs", f"by machine code: {_kinds(needs.by_machine_code)}"
    yield "", f"by PTX, compiled by the driver: {_kinds(needs.by_ptx)}"
    if needs.excluded:
        yield "", f"not, although its code would fit: {_kinds(needs.excluded)}"
    yield "Keras", ", ".join(asks(release, ["keras"])) or "any"
    yield "Packages", ", ".join(line for line in release.requires if not line.startswith("keras"))
    extra = (
        ", ".join(release.and_cuda) if release.and_cuda else "there is no such extra: install CUDA and cuDNN yourself"
    )
    yield "[and-cuda]", extra
    yield "cuDNN", f"built against {release.cudnn}" if release.cudnn else "its build does not say which"
    yield "NCCL", nccl_words(release)
    yield "Libraries", ", ".join(needs.sonames.values())
    if release.note:
        yield "Note", release.note


def _kinds(kinds: Sequence[GpuKind]) -> str:
    return (
        "; ".join(f"{kind.capability} ({', '.join([*kind.models, *kind.arm_models][:3])})" for kind in kinds) or "none"
    )


def _bad_words(row: Any) -> str:
    versions = ", ".join(f"{name} {spec}" for name, spec in row.when.items())
    job = f", with {row.job}" if row.job else ""
    return f"{row.id} ({versions}{job}): {row.symptom}. Fix: {row.fix}."


def _labelled(label: str, body: str, canvas: Canvas) -> Iterator[str]:
    yield from _wrapped(body, canvas, first=label.ljust(_LABEL), rest=" " * _LABEL)


def _wrapped(text: str, canvas: Canvas, *, first: str, rest: str) -> list[str]:
    return textwrap.wrap(
        text, canvas.width, initial_indent=first, subsequent_indent=rest, break_long_words=False, break_on_hyphens=False
    ) or [first.rstrip()]


# As Markdown.


def _markdown(view: View, canvas: Canvas) -> str:  # noqa: ARG001 - its reader's browser is the canvas
    lines = [f"## {_title(view)}", ""]
    lines += [f"- {fact.label}: {_escaped(fact.value)} ({_escaped(fact.origin)})" for fact in view.facts]
    lines += [f"- Matrix: {_escaped(view.matrix.name)}, of {view.matrix.updated}, {view.matrix.platform}", ""]
    lines += _markdown_needs(view, view.needs) if view.needs else _markdown_table(view)
    return "\n".join(lines) + "\n"


def _title(view: View) -> str:
    return f"What TensorFlow {view.needs.release.version} needs" if view.needs else "Which TensorFlow runs"


def _markdown_table(view: View) -> Iterator[str]:
    yield f"| | {' | '.join(_HEADINGS)} | here |"
    yield f"|{'---|' * (len(_HEADINGS) + 2)}"
    for verdict in view.verdicts:
        why = "; ".join(reasons(verdict))
        here = f"{_word(view, verdict)}: {why}" if why else _word(view, verdict)
        cells = [_mark(view, verdict), *_cells(view, verdict.release), here]
        yield f"| {' | '.join(_escaped(cell) for cell in cells)} |"
    yield from ("", r"\> is the newest that runs, \* is installed.")
    chosen = view.best or (view.nearest if view.nearest and view.nearest.outcome == "unknown" else None)
    if chosen is not None:
        yield from ("", "```sh", chosen.command, "```", "")
        yield from (f"- {_escaped(note)}" for note in notes(chosen))


def _markdown_needs(view: View, needs: Needs) -> Iterator[str]:
    yield from ("| | |", "|---|---|")
    yield from (f"| {label} | {_escaped(body)} |" for label, body in _needs_rows(needs))
    command = view.verdicts[0].command if view.verdicts else needs.command
    yield from ("", "```sh", command, "```", "")
    yield from (f"- {_escaped(_bad_words(row))}" for row in needs.known_bad)
    for verdict in view.verdicts:
        yield from ("", f"On the machine above: {_word(view, verdict)}", "")
        yield from (f"- {_escaped(text)}" for text in [*reasons(verdict), *notes(verdict)])


def _escaped(text: str) -> str:
    flat = " ".join(text.split())
    return "".join(f"\\{character}" if character in r"\`*_[]<>|#~$" else character for character in flat)


# For programs.


def _json(view: View, canvas: Canvas) -> str:  # noqa: ARG001 - a format for programs has no canvas

    document: dict[str, Any] = {
        "schema": SCHEMA,
        "kdoctor": __version__,
        "matrix": {"name": view.matrix.name, "updated": view.matrix.updated, "platform": view.matrix.platform},
        "machine": _machine(view),
        "best": _verdict(view, view.best) if view.best else None,
    }
    if view.needs:
        document["needs"] = _needs(view.needs)
    document["releases"] = [_verdict(view, verdict) for verdict in view.verdicts]
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def _machine(view: View) -> dict[str, Any] | None:
    machine = view.machine
    if machine is None:
        return None
    gpus = None if machine.gpus is None else [{"name": gpu.name, "capability": gpu.capability} for gpu in machine.gpus]
    return {
        "driver": machine.driver,
        "gpus": gpus,
        "unknown_gpus": list(machine.unnamed_gpus),
        "python": machine.python,
        "glibc": machine.glibc,
        "platform": machine.platform,
        "tensorflow_installed": view.installed,
        "facts": [{"label": fact.label, "value": fact.value, "origin": fact.origin} for fact in view.facts],
    }


def _verdict(view: View, verdict: Verdict) -> dict[str, Any]:
    return {
        **_release(verdict.release),
        "oldest_driver": view.matrix.oldest_driver(verdict.release.cuda),
        "outcome": verdict.outcome,
        "against": [_reason(reason) for reason in verdict.against],
        "missing": [_reason(reason) for reason in verdict.missing],
        "cautions": [_reason(reason) for reason in verdict.cautions],
        "install": {"command": verdict.command, "requirements": list(verdict.requirements)},
    }


def _reason(reason: Reason) -> dict[str, Any]:
    return {"rule": reason.rule, "failure": reason.failure, "text": reason.text}


def _release(release: Release) -> dict[str, Any]:
    return {
        "version": release.version,
        "distribution": release.distribution,
        "python": release.python,
        "requires": list(release.requires),
        "and_cuda": None if release.and_cuda is None else list(release.and_cuda),
        "cuda": release.cuda,
        "cudnn": release.cudnn,
        "cubins": list(release.cubins),
        "ptx": list(release.ptx),
        "nccl": {"linkage": release.nccl.linkage, "version": release.nccl.version, "basis": release.nccl.basis},
        "glibc": release.glibc,
        "runpath": list(release.runpath),
        "note": release.note,
        "inferred_from": release.inferred_from,
        "verified": release.verified,
        "source": list(release.source),
    }


def _needs(needs: Needs) -> dict[str, Any]:
    return {
        **_release(needs.release),
        "oldest_driver": needs.oldest_driver,
        "ptx_driver": needs.ptx_driver,
        "capabilities_by_machine_code": [kind.capability for kind in needs.by_machine_code],
        "capabilities_by_ptx": [kind.capability for kind in needs.by_ptx],
        "capabilities_excluded": [kind.capability for kind in needs.excluded],
        "libraries": needs.sonames,
        "known_bad": [
            {
                "id": row.id,
                "when": dict(row.when),
                "job": row.job,
                "effect": row.effect,
                "symptom": row.symptom,
                "ended_by": dict(row.ended_by),
                "fix": row.fix,
                "source": list(row.source),
            }
            for row in needs.known_bad
        ],
        "install": {"command": needs.command},
    }


_RENDERERS: Mapping[str, Callable[[View, Canvas], str]] = {"terminal": _terminal, "json": _json, "markdown": _markdown}
FORMATS: tuple[str, ...] = tuple(_RENDERERS)
"""Names of the formats."""
