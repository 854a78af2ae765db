"""``kdoctor matrix add``."""

import datetime as dt
from pathlib import Path
from typing import Annotated

from kdoctor.cli.options import option
from kdoctor.cli.stderr import show
from kdoctor.errors import UsageError
from kdoctor.inputs import expanded
from kdoctor.matrix.wheels.download import download, pinned
from kdoctor.matrix.wheels.row import document
from kdoctor.matrix.wheels.wheel import read_wheel
from kdoctor.probes.process.run_folder import run_folder
from kdoctor.run.log import warn


def add(
    *,
    wheel: Annotated[
        str,
        option(
            "A wheel file, or a release such as tensorflow==2.21.0, which pip downloads (600 MB).",
            metavar="FILE|NAME==VERSION",
        ),
    ],
) -> None:
    """Read a TensorFlow wheel and print its row of the version matrix, as a file for --matrix.

    The row has what is in the wheel: requirements, CUDA, the search path for libraries, and the GPU code with its PTX.
    Nothing in the wheel is executed. A wheel states one Python version; extend the row by hand if there are others.
    """
    path = expanded(wheel)
    requirement = None if path.is_file() else pinned(wheel)
    today = dt.datetime.now(tz=dt.timezone.utc).date()
    if requirement is None:
        if not path.is_file():
            raise UsageError(f"--wheel {wheel or repr('')}: no such file, and not a release such as tensorflow==2.21.0")
        show(document(read_wheel(path), today), document=True)
        return
    with run_folder("wheel") as folder:
        warn(f"kdoctor: downloading {requirement}", level="info", event="download")
        show(document(read_wheel(download(requirement, Path(folder))), today), document=True)
