"""A notebook, whose cells run in order, as in a kernel that has just started."""

from __future__ import annotations

import ast
import json
import linecache
import os
import re
from pathlib import Path
from typing import Any, Dict, List
from unittest.mock import MagicMock

from kdoctor_job.target.parts import PartError

_MAGIC = re.compile(
    r"^([ \t]*(?:[\w., ]+=[ \t]*)?)(?:%(?:prun|time|timeit) (?!-)|(?:[%!?]|[\w.]+\?\??$)(?:.*\\\n)*.*)", re.MULTILINE
)
"""A magic, a shell command or a question: what precedes code, or the whole line. Its result may have a name."""


def _code(cell: str) -> str:
    """The code of a cell without what IPython adds to the language.

    Only a line with a syntax error is a magic: ``%`` may also continue an expression.
    """
    if re.match(r"\s*%%(?!capture|prun|time)\w", cell):  # the others have text that is not code of the notebook
        return ""
    while True:
        try:
            ast.parse(cell)
        except SyntaxError as error:
            begin = len("".join(cell.splitlines(keepends=True)[: (error.lineno or 1) - 1]))
            magic = _MAGIC.match(cell, begin)
            if magic is None:
                return cell
            cell = f"{cell[:begin]}{magic[1]}[]; {cell[magic.end() :]}"
        else:
            return cell


def run_notebook(file: Path, variables: Dict[str, Any], names: List[str]) -> None:
    """Run the cells with code, in the folder of the notebook.

    Args:
        file: the notebook.
        variables: of its code.
        names: gets that of each cell in stacks, as ``train.ipynb:cell 3``.

    Raises:
        PartError: it is not a notebook.
    """
    try:
        cells = json.loads(file.read_text("utf-8-sig"))["cells"]
        texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError):
        raise PartError("script", f"{file.name} is not a notebook of format 4", "Save it again in Jupyter.") from None
    names += [f"{file.absolute()}:cell {number}" for number in range(1, len(texts) + 1)]
    os.chdir(file.absolute().parent)
    variables["display"] = variables["get_ipython"] = MagicMock()
    codes = [f"{_code(text)}\n" for text in texts]
    for name, code in zip(names, codes):
        linecache.cache[name] = len(code), None, code.splitlines(keepends=True), name  # for stacks, and AutoGraph
    for name, code in zip(names, codes):
        exec(compile(code, name, "exec"), variables)  # noqa: S102 - the user's code
