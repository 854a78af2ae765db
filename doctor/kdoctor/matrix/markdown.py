"""The answer of ``kdoctor matrix`` as Markdown."""

from collections.abc import Iterator

from kdoctor.matrix.advice import advise, install_commands, ways_beside
from kdoctor.matrix.needs_rows import all_rows, known_bad_text
from kdoctor.matrix.requirements import Needs
from kdoctor.matrix.view import View, cells, mark, matrix_text, notes, outcome_text, reasons
from kdoctor.text.markdown import escape

_HEADINGS = ("TensorFlow", "Python", "CUDA", "cuDNN", "oldest driver", "machine code for", "Keras", "NumPy", "protobuf")


def render_markdown(view: View) -> str:
    """The whole answer: every release with its reasons. The reader's browser wraps the lines."""
    lines = [f"## {_title(view)}", ""]
    lines += [f"- {fact.label}: {escape(fact.value)} ({escape(fact.origin)})" for fact in view.facts]
    lines += [f"- Matrix: {escape(matrix_text(view))}", ""]
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
        here = f"{outcome_text(view, verdict)}: {why}" if why else outcome_text(view, verdict)
        row = [mark(view, verdict), *cells(view, verdict.release), here]
        yield f"| {' | '.join(escape(cell) for cell in row)} |"
    yield from ("", r"\> newest that runs, \* installed.")
    for item in advise(view):
        yield from ("", escape(item.text), *([""] if item.reasons else ()))
        yield from (f"- {escape(reason)}" for reason in item.reasons)
        yield from ("", "```sh", *item.commands, "```", "") if item.commands else ()
        yield from (f"- {escape(note)}" for note in item.notes)
    yield from _markdown_keras(view)


def _markdown_needs(view: View, needs: Needs) -> Iterator[str]:
    yield from ("| | |", "|---|---|")
    yield from (
        f"| {label} | {escape(body)} |"
        for label, body in all_rows(needs, view.machine.python if view.machine else None)
    )
    commands = install_commands(view, needs)
    yield from ("", "Install, for the CPU:") if commands and view.on_cpu else ()
    yield from ("", "```sh", *commands, "```") if commands else ()
    yield ""
    yield from (f"- {escape(known_bad_text(row))}" for row in needs.known_bad)
    yield from _markdown_keras(view)
    for verdict in view.verdicts:
        yield from ("", f"On the machine above: {outcome_text(view, verdict)}", "")
        yield from (f"- {escape(text)}" for text in [*reasons(verdict), *notes(verdict), *ways_beside(view)])


def _markdown_keras(view: View) -> Iterator[str]:
    if view.keras:
        yield from ("", "Keras on several replicas, measured:", "")
    for keras in view.keras:
        yield f"- {escape(f'{keras.package} {keras.release}: {keras.text(view.matrix)}')}"
