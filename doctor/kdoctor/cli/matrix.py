"""``kdoctor matrix``."""

import datetime as dt
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar

import typer

from kdoctor.cli.lazy import LazyCommand, LazyGroup
from kdoctor.cli.options import MatrixOption, option
from kdoctor.cli.stderr import show
from kdoctor.errors import UsageError, one_of
from kdoctor.matrix.compatibility import compatible, judge
from kdoctor.matrix.load import load_matrix
from kdoctor.matrix.machine import Asked, begin_python, describe
from kdoctor.matrix.render import FORMATS, render
from kdoctor.matrix.requirements import requirements
from kdoctor.matrix.view import Fact, View
from kdoctor.output import parse_outputs
from kdoctor.text.canvas import canvas_for


class _Commands(LazyGroup):
    lazy_commands: ClassVar[Mapping[str, LazyCommand]] = {
        "add": LazyCommand(
            "kdoctor.cli.matrix_add:add",
            "Read a TensorFlow wheel and print its row of the version matrix, as a file for --matrix.",
            "Example: kdoctor matrix add --wheel tensorflow==2.21.0 > own.yaml",
        )
    }


_FRAMEWORKS = ("tensorflow", "jax")


def _of_backend(backend: str | None) -> Iterator[Fact]:
    """Whose releases are judged, where Keras' variable decides or asks for another framework."""
    if backend == "jax":
        yield Fact("Framework", "JAX", "KERAS_BACKEND")
    elif backend not in (None, "", "tensorflow"):
        yield Fact("Framework", f"TensorFlow: the matrix has no releases of {backend}", "KERAS_BACKEND")


app = typer.Typer(
    cls=_Commands,
    invoke_without_command=True,
    epilog='Example: kdoctor matrix --driver 535.161.08 --gpu "A100" --python 3.11',
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


@app.callback()
def matrix(
    context: typer.Context,
    *,
    tensorflow: Annotated[
        str | None, option("Show what this release requires: 2.19.1, 2.19 for its latest patch release, or nightly.")
    ] = None,
    framework: Annotated[
        str | None,
        option(
            "Framework whose releases are judged. \\[default: jax where KERAS_BACKEND is jax, else tensorflow]",
            metavar="tensorflow|jax",
        ),
    ] = None,
    driver: Annotated[
        str | None, option("Version of the NVIDIA driver, such as 535.161.08. \\[default: this machine's]")
    ] = None,
    gpu: Annotated[
        list[str] | None,
        option(
            "Model or compute capability of a GPU, such as A100 or 8.0 (repeatable), or none for the CPU. "
            "\\[default: this machine's]"
        ),
    ] = None,
    python: Annotated[
        str | None,
        option(
            "Python version such as 3.11 or 3.14t, or path of an interpreter or environment. "
            "\\[default: the active environment, the project's, or kdoctor's]"
        ),
    ] = None,
    platform: Annotated[
        str | None,
        option(
            "Platform of the machine. \\[default: this machine's]",
            metavar="linux-x86_64|linux-aarch64|windows|wsl2|macos|macos-x86_64",
        ),
    ] = None,
    glibc: Annotated[str | None, option("Version of glibc, such as 2.28, or musl. \\[default: this machine's]")] = None,
    cuda: Annotated[
        str | None, option("CUDA release installed on the system, to use in place of the NVIDIA wheels.")
    ] = None,
    cudnn: Annotated[str | None, option("cuDNN release installed on the system, such as 9.3.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="List each release with all its reasons.")] = False,
    matrix: MatrixOption = None,
    format: Annotated[  # noqa: A002 - the option's name
        str, typer.Option("--format", "-f", metavar="|".join(FORMATS), help="Output format.")
    ] = "terminal",
) -> None:
    """Show which releases fit a driver, GPUs and Python.

    TensorFlow is not imported and no GPU is used. With several GPU models, a release must support each of them.
    """
    if context.invoked_subcommand:
        return
    chosen = parse_outputs((), FORMATS, stdout=format).stdout
    backend = None if framework or tensorflow else os.environ.get("KERAS_BACKEND")
    chosen_framework = one_of("--framework", framework or ("jax" if backend == "jax" else "tensorflow"), _FRAMEWORKS)
    if tensorflow is not None and chosen_framework == "jax":
        raise UsageError("--tensorflow cannot be used with --framework jax")
    gpus = tuple(name for names in gpu or () for name in names.split(","))
    asked = Asked(driver=driver, gpus=gpus, python=python, platform=platform, glibc=glibc, cuda=cuda, cudnn=cudnn)
    # It is read while the matrix is loaded. What a release requires is the same for any Python.
    reading = begin_python(python, os.environ) if tensorflow is None or asked.anything else None
    known = load_matrix(matrix, os.environ).of(chosen_framework)
    today = dt.datetime.now(tz=dt.timezone.utc).date()
    if tensorflow is not None and reading is None:
        view = View(matrix=known, machine=None, needs=requirements(known, tensorflow), today=today, detailed=all_)
    else:
        found = describe(known, asked, os.environ, reading=reading)
        needs = requirements(known.at(found.machine.platform), tensorflow) if tensorflow is not None else None
        view = View(
            matrix=known,
            machine=found.machine,
            facts=(*_of_backend(backend), *found.facts),
            verdicts=(judge(known, needs.release, found.machine),) if needs else compatible(known, found.machine),
            installed=found.installed,
            needs=needs,
            today=today,
            detailed=all_,
        )
    show(render(view, chosen, canvas_for(sys.stdout, os.environ)), rendered=True)
