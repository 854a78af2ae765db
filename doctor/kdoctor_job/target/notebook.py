"""A notebook, whose cells run in order, as in a kernel that has just started."""

from __future__ import annotations

import json
import linecache
import os
import re
from pathlib import Path
from typing import Any, Dict, List
from unittest.mock import MagicMock

from kdoctor_job.target.parts import PartError

_OF_CODE = r"(?:capture|prun|time|timeit)\b(?:[ \t]+-\w(?:[ \t]*\d+)?)*"
"""Magics whose text is code of the notebook."""
_CODE_CELL = re.compile(rf"\A%%{_OF_CODE}.*")
_OTHER_CELL = re.compile(r"\A%%.*\Z", re.DOTALL)
_CODE_LINE = re.compile(rf"^([ \t]*)%{_OF_CODE}[ \t]*(?=\S)", re.MULTILINE)
_OTHER_LINE = re.compile(r"^([ \t]*)(?:[%!?](?:.*\\\n)*.*|[\w.]+\?{1,2}[ \t]*)$", re.MULTILINE)
_ASSIGNED = re.compile(r"^([ \t]*[\w, \t]+=[ \t]*)[%!].*$", re.MULTILINE)


def run_notebook(file: Path, variables: Dict[str, Any], names: List[str]) -> None:
    """Run the cells with code, in the folder of the notebook, without shell commands and other magics.

    Args:
        file: the notebook.
        variables: of its code.
        names: gets that of each cell in stacks, as ``train.ipynb:cell 3``.

    Raises:
        PartError: it is not a notebook.
    """
    try:
        cells = json.loads(file.read_text("utf-8-sig"))["cells"]
        codes = [_python("".join(cell["source"])) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError):
        raise PartError("script", f"{file.name} is not a notebook of format 4", "Save it again in Jupyter.") from None
    names += [f"{file.absolute()}:cell {number}" for number in range(1, len(codes) + 1)]
    os.chdir(file.absolute().parent)
    variables.update(display=MagicMock(), get_ipython=MagicMock())
    for name, code in zip(names, codes):
        linecache.cache[name] = len(code), None, code.splitlines(keepends=True), name  # for stacks, and AutoGraph
    for name, code in zip(names, codes):
        exec(compile(code, name, "exec"), variables)  # noqa: S102 - the user's code


def _python(cell: str) -> str:
    """The code of a cell, with the same line numbers. A line may begin with ``%`` in Python, too, within a text."""
    cell = _OTHER_CELL.sub("", _CODE_CELL.sub("", cell)) + "\n"
    try:
        compile(cell, "cell", "exec")
    except SyntaxError:
        cell = _ASSIGNED.sub(r"\1[]", _CODE_LINE.sub(r"\1", cell))
        cell = _OTHER_LINE.sub(lambda found: f"{found[1]}pass" + "\n" * found[0].count("\n"), cell)
    return cell
