"""A notebook, whose cells run in order, as in a kernel that has just started."""

from __future__ import annotations

import json
import linecache
import os
import re
import sys
from functools import partial
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence
from unittest.mock import MagicMock

from kdoctor_job.target.parts import PartError

_OF_CODE = r"(?:capture|prun|time|timeit)\b(?:[ \t]+-\w(?:[ \t]*\d+)?)*"
"""Magics whose text is code of the notebook."""
_CODE_CELL = re.compile(rf"\A%%{_OF_CODE}.*")
_MODULE_CELL = re.compile(
    r"\A%%(?:writefile|file)[ \t]+(?P<more>-a[ \t]+)?(?:\./)?(?P<name>\w+)\.py[ \t]*$", re.MULTILINE
)
"""Writes a module of the notebook."""
_OTHER_CELL = re.compile(r"\A%%.*\Z", re.DOTALL)
_CODE_LINE = re.compile(rf"^([ \t]*)%{_OF_CODE}[ \t]*(?=\S)", re.MULTILINE)
_OTHER_LINE = re.compile(r"^([ \t]*)(?:[%!?](?:.*\\\n)*.*|[\w.]+\?{1,2}[ \t]*)$", re.MULTILINE)
_ASSIGNED = re.compile(r"^([ \t]*[\w, \t]+=[ \t]*)[%!].*$", re.MULTILINE)


def run_notebook(file: Path, variables: Dict[str, Any], names: List[str]) -> None:
    """Run the cells with code, in the folder of the notebook, without shell commands and other magics.

    Modules that ``%%writefile`` writes can be imported, and are not written.

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
    written = [_MODULE_CELL.match(text) for text in texts]
    codes = [text[module.end() :] + "\n" if module else _python(text) for text, module in zip(texts, written)]
    compiled: List[Any] = []
    for number, code in enumerate(codes, 1):
        name = f"{file.absolute()}:cell {number}"
        names.append(name)
        linecache.cache[name] = len(code), None, code.splitlines(keepends=True), name  # for stacks, and AutoGraph
        compiled.append(partial(compile, code, name, "exec"))
    modules: Dict[str, List[Any]] = {}
    for made, module in zip(compiled, written):
        if module:
            before = modules.get(module["name"], []) if module["more"] else []
            modules[module["name"]] = [*before, made]
    sys.meta_path.insert(0, _Modules(modules))
    os.chdir(file.absolute().parent)
    variables.update(display=MagicMock(), get_ipython=MagicMock())
    for made, module in zip(compiled, written):
        if not module:
            exec(made(), variables)  # noqa: S102 - the user's code


class _Modules:
    """Imports modules from the cells that write them."""

    def __init__(self, modules: Mapping[str, Sequence[Callable[[], Any]]]) -> None:
        self._modules = modules
        """Their compiled code, by name."""

    def find_spec(self, name: str, *_: object) -> Optional[ModuleSpec]:
        """As every finder has it."""
        loader: Any = self
        return ModuleSpec(name, loader) if name in self._modules else None

    def create_module(self, _: ModuleSpec) -> None:
        """Let Python make it."""

    def exec_module(self, module: Any) -> None:
        """Run its cells."""
        for made in self._modules[module.__name__]:
            exec(made(), vars(module))  # noqa: S102 - the user's code


def _python(cell: str) -> str:
    """The code of a cell, with the same line numbers. A line may begin with ``%`` in Python, too, within a text."""
    cell = _OTHER_CELL.sub("", _CODE_CELL.sub("", cell)) + "\n"
    try:
        compile(cell, "cell", "exec")
    except SyntaxError:
        cell = _ASSIGNED.sub(r"\1[]", _CODE_LINE.sub(r"\1", cell))
        cell = _OTHER_LINE.sub(lambda found: f"{found[1]}pass" + "\n" * found[0].count("\n"), cell)
    return cell
