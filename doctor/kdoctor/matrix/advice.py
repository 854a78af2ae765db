"""What ``kdoctor matrix`` advises for a machine: the same lines in every format."""

from collections.abc import Iterator
from dataclasses import replace

from kdoctor.matrix.requirements import Needs
from kdoctor.matrix.verdict import Verdict, add_row
from kdoctor.matrix.view import View, named, notes, reasons
from kdoctor.matrix.ways import way_out
from kdoctor.records import record


@record
class Advice:
    """One thing to do, or to know."""

    text: str
    reasons: tuple[str, ...] = ()
    """Why, a line each."""
    commands: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What to know about the installed release."""
    follows: bool = False
    """Whether it adds to the one before."""
    begins: bool = False
    """Whether it is about another release than the one before."""


def advise(view: View) -> Iterator[Advice]:
    """What to install, or what comes closest; other ways; and what is known about the platform."""
    if view.needs is not None:
        if commands := install_commands(view, view.needs):
            yield Advice(text="Install, for the CPU:" if view.on_cpu else "Install:", commands=commands)
        yield from (Advice(text=text, follows=True) for text in ways_beside(view))
        return
    yield from _release(view)
    if view.on_jax is not None:
        release = named(replace(view, matrix=view.matrix.of("jax")), view.on_jax.release)
        where = " on the CPU" if view.machine is not None and view.machine.for_cpu else ", which uses the GPU"
        text = f"Keras 3 also runs on {release}{where}:"
        yield Advice(text=text, commands=(f"{view.on_jax.command} keras",))
    yield from _ways(view)
    for line in view.advice:
        text, found, command = line.partition(": python ")
        commands = (f"python {command}",) if found else ()
        yield Advice(text=f"{text}:" if found else line, commands=commands, follows=True)


def _release(view: View) -> Iterator[Advice]:
    if view.unlisted is not None:
        text = (
            f"TensorFlow {view.unlisted} is installed, and the matrix has no row for it. kdoctor check judges it by its"
            " trainings. To read its row from the wheel:"
        )
        yield Advice(text=text, commands=(add_row(view.unlisted),))
        if view.best is not None:
            yield Advice(text=f"Newest release in the matrix that runs here: {named(view, view.best.release)}")
    elif view.best is not None:
        on = " on the CPU" if view.machine is not None and view.machine.for_cpu else ""
        kind = ", a pre-release, because no final release runs" if view.best.release.prerelease else ""
        text = f"Newest compatible release{on}: {named(view, view.best.release)}{kind}"
        yield Advice(text=text, commands=view.best.commands, notes=tuple(notes(view.best)))
    elif view.on_cpu:
        text = f"No {view.matrix.framework} in the matrix uses a GPU here. For the CPU:"
        yield Advice(text=text, commands=view.on_cpu)
    elif view.nearest is not None:
        yield _nearest(view, view.nearest)


def _nearest(view: View, near: Verdict) -> Advice:
    """The release that comes closest, where none is known to run."""
    if near.outcome == "unknown":
        text = f"Inconclusive. Newest release without a known problem: {named(view, near.release)}"
        return Advice(text=text, reasons=tuple(reasons(near)), commands=near.commands, notes=tuple(notes(near)))
    why = reasons(near)
    if (last := view.earlier) is not None:
        why.append(
            f"The matrix begins at TensorFlow {view.matrix.releases[0].version}. The last release for this driver was "
            f"{last.tensorflow}: CUDA {last.cuda} and cuDNN {last.cudnn} on the system, Python {last.python}"
        )
    text = f"No {view.matrix.framework} in the matrix runs here. Closest: {near.release.version}"
    return Advice(text=text, reasons=tuple(why))


def _ways(view: View) -> Iterator[Advice]:
    if view.with_wheels is not None:
        text = f"With the CUDA libraries of pip in place of the system's: {named(view, view.with_wheels.release)}"
        yield Advice(text=text, commands=view.with_wheels.commands, begins=True)
    way = way_out(view.matrix, view.machine, view.verdicts)
    if way is None:
        return
    why = f"; {way.why}" if way.why and view.best is not None else ""
    text = f"To run {named(view, way.verdict.release)}: driver {way.driver} or newer{why}"
    yield Advice(text=text, begins=True)
    if way.package:
        text = f"or, on data-center GPUs, NVIDIA's package {way.package}, on Ubuntu:"
        yield Advice(text=text, commands=(*way.commands, *way.verdict.commands), follows=True)


def install_commands(view: View, needs: Needs) -> tuple[str, ...]:
    """What installs the named release, if it may run on the machine: with its GPUs, else on its CPU."""
    if view.on_cpu:
        return view.on_cpu
    if view.verdicts:
        return view.verdicts[0].commands if view.verdicts[0].outcome != "does-not-run" else ()
    return needs.commands


def ways_beside(view: View) -> Iterator[str]:
    """What else to do where the named release does not run."""
    way = way_out(view.matrix, view.machine, view.verdicts)
    if way is not None and way.package:
        yield f"without a newer driver: NVIDIA's forward-compatibility package {way.package}, on data-center GPUs"
    if view.instead is not None:
        yield f"newest release that runs here: {named(view, view.instead.release)} (leave out --tensorflow)"
