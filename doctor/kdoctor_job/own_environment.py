"""The environment variables that a job's own code sets before it imports a framework, which reads them at its import.

kdoctor imports the framework before the job's code runs, so they are set for the whole examination.
"""

import ast
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

_READ = re.compile(r"(CUDA|JAX|KERAS|NCCL|TF|XLA)_")
"""What frameworks read. Others, such as ``LD_LIBRARY_PATH``, have no effect in a process that runs."""
_FRAMEWORK = re.compile(r"(?:jax|keras|tensorflow|tf_keras|torch)\b")
_MAGIC = re.compile(r"^%(?:set_)?env[ \t]+(\w+)[ \t=]+(\S+)[ \t]*$", re.MULTILINE)
_OTHER_LINE = re.compile(r"^[%!].*$", re.MULTILINE)


def set_by(file: Path, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables that code sets whenever it runs, each to a literal text, and that have another value so far.

    Args:
        file: a script, a module or a notebook. What cannot be read is left out: its run says that better.
        environment: what is set already.
    """
    found: dict[str, str] = {}
    with suppress(OSError, SyntaxError, ValueError, KeyError, TypeError):
        for statement in takewhile(_needs_no_framework, _statements(file)):
            match statement:
                case ast.Assign([ast.Subscript(of, ast.Constant(str(name)))], ast.Constant(str(value))):
                    pass
                case ast.Expr(
                    ast.Call(ast.Attribute(of, "setdefault"), [ast.Constant(str(name)), ast.Constant(str(value))])
                ):
                    value = {**environment, **found}.get(name, value)
                case _:
                    continue
            if ast.unparse(of) in ("os.environ", "environ") and _READ.match(name):
                found[name] = value
    return {name: value for name, value in found.items() if environment.get(name) != value}


def _statements(file: Path) -> Iterator[ast.stmt]:
    """Those that run whenever the file does, in order."""
    codes = [file.read_text("utf-8-sig")]
    if file.suffix == ".ipynb":
        cells = [cell for cell in json.loads(codes[0])["cells"] if cell["cell_type"] == "code"]
        codes = [_MAGIC.sub(r"os.environ['\1'] = '\2'", "".join(cell["source"])) for cell in cells]
        codes = [_OTHER_LINE.sub("", code) for code in codes]
    for code in codes:
        yield from ast.parse(code).body


def _needs_no_framework(statement: ast.stmt) -> bool:
    names = [alias.name for alias in statement.names] if isinstance(statement, ast.Import) else []
    module = statement.module or "" if isinstance(statement, ast.ImportFrom) else ""
    return not any(map(_FRAMEWORK.match, [*names, module]))
