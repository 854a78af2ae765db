"""``kdoctor matrix``."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from kdoctor.cli.stderr import show
from kdoctor.matrix.compatibility import compatible, judge
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.machine import Asked, describe
from kdoctor.matrix.render import FORMATS, render
from kdoctor.matrix.requirements import find_release, requirements
from kdoctor.matrix.view import View
from kdoctor.output import parse_outputs
from kdoctor.text.canvas import canvas_for

_FORMATS = "terminal|json|markdown"


def matrix(
    *,
    tensorflow: Annotated[
        str | None,
        typer.Option(
            help="What this release needs: 2.19.1, or 2.19 for its newest patch release, or nightly.",
            show_default=False,
        ),
    ] = None,
    driver: Annotated[
        str | None,
        typer.Option(
            help="Version of the NVIDIA driver, such as 535.161.08. Otherwise this machine's.", show_default=False
        ),
    ] = None,
    gpu: Annotated[
        list[str] | None,
        typer.Option(
            help="A GPU's model or compute capability, such as A100 or 8.0 (repeatable). Otherwise this machine's.",
            show_default=False,
        ),
    ] = None,
    python: Annotated[
        str | None,
        typer.Option(
            help="A Python version such as 3.11, or the path of an interpreter or environment. Otherwise the active "
            "environment's, otherwise kdoctor's own.",
            show_default=False,
        ),
    ] = None,
    matrix: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A matrix of your own: it extends the shipped one, or stands for it. Otherwise KDOCTOR_MATRIX.",
            show_default=False,
        ),
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        str, typer.Option("--format", "-f", metavar=_FORMATS, help="What stdout carries.")
    ] = "terminal",
) -> None:
    """Which TensorFlow runs on this driver, these GPUs and this Python; why the others do not; how to install the best.

    TensorFlow is not imported, and no GPU is used. Where a thing is not known
    the answer is "unknown". With several GPUs each must run it.
    """
    chosen = parse_outputs((), FORMATS, stdout=format).stdout
    known = load_matrix(matrix, os.environ)
    asked = Asked(driver=driver, gpus=tuple(gpu or ()), python=python)
    if tensorflow is None:
        found = describe(known, asked, os.environ)
        view = View(
            matrix=known,
            machine=found.machine,
            facts=found.facts,
            verdicts=compatible(known, found.machine),
            installed=found.installed,
        )
    elif asked.anything:
        release = find_release(known, tensorflow)
        found = describe(known, asked, os.environ)
        view = View(
            matrix=known,
            machine=found.machine,
            facts=found.facts,
            verdicts=(judge(known, release, found.machine),),
            installed=found.installed,
            needs=requirements(known, release.version),
        )
    else:
        view = View(matrix=known, machine=None, needs=requirements(known, tensorflow))
    show(render(view, chosen, canvas_for(sys.stdout, os.environ)))
