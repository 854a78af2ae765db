"""A notebook, whose cells run in order, as in a kernel that has just started."""

from __future__ import annotations

import json
import linecache
import os
import re
from pathlib import Path
from typing import Any, Callable, Dict, List

from kdoctor_job.target.parts import PartError
from kdoctor_target.runner.case import NotHere

_OF_CODE = ("capture", "prun", "time", "timeit")
"""Magics whose text is code of the notebook."""
_CODE_CELL = re.compile(rf"\A%%(?:{'|'.join(_OF_CODE)})\b.*")
"""The first line of a cell that one of them is about."""


class _Shell:
    """What IPython turns magics and shell commands into calls of: only ``%time model.fit(data)`` does something."""

    def __init__(self, run: Callable[[str], object]) -> None:
        self._run = run

    def run_line_magic(self, name: str, line: str, *_: Any, **__: Any) -> None:
        if name in _OF_CODE:
            self._run(line)

    def __getattr__(self, _: str) -> Callable[..., Any]:
        return lambda *_, **__: []


def run_notebook(file: Path, variables: Dict[str, Any], names: List[str]) -> None:
    """Run the cells with code, in the folder of the notebook.

    Args:
        file: the notebook.
        variables: of its code.
        names: gets that of each cell in stacks, as ``train.ipynb:cell 3``.

    Raises:
        PartError: it is not a notebook.
        NotHere: this environment cannot run one.
    """
    try:
        from IPython.core.inputtransformer2 import TransformerManager

        cells = json.loads(file.read_text("utf-8-sig"))["cells"]
        texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except ImportError:
        raise NotHere(f"{file.name} needs IPython, which is not installed: name the Python of its kernel") from None
    except (ValueError, KeyError, TypeError):
        raise PartError("script", f"{file.name} is not a notebook of format 4", "Save it again in Jupyter.") from None

    names += [f"{file.absolute()}:cell {number}" for number in range(1, len(texts) + 1)]
    os.chdir(file.absolute().parent)
    transform = TransformerManager().transform_cell  # type: ignore[no-untyped-call]
    variables["display"] = lambda *_, **__: None

    def run(name: str, code: str) -> None:
        variables["get_ipython"] = lambda: _Shell(lambda line: run(name, transform(line)))
        exec(compile(code, name, "exec"), variables)  # noqa: S102 - the user's code

    codes = [transform(_CODE_CELL.sub("", text)) for text in texts]
    for name, code in zip(names, codes):
        linecache.cache[name] = len(code), None, code.splitlines(keepends=True), name  # for stacks, and AutoGraph
    for name, code in zip(names, codes):
        run(name, code)
