"""The flow analysis: from a parsed script to its trace."""

import ast
from collections.abc import Mapping, Sequence
from functools import cache, partial

from kdoctor_lint.flow.environment import Env
from kdoctor_lint.flow.expressions import EVALUATORS
from kdoctor_lint.flow.interpreter import Interpreter, Neighbours
from kdoctor_lint.flow.removals import set_in
from kdoctor_lint.flow.statements import EXECUTORS
from kdoctor_lint.flow.trace import Trace


def analyze(
    body: Sequence[ast.stmt],
    *,
    legacy: bool = False,
    targets: Mapping[str, tuple[int, int]] | None = None,
    neighbours: Neighbours | None = None,
) -> Trace:
    """What a script does.

    Args:
        body: its statements; for a notebook, those of all cells in order.
        legacy: whether it is known to use Keras 2.
        neighbours: finds the modules of the same tree that it imports.
        targets: the releases of TensorFlow and Keras that it is for, where they are not the newest.

    Raises:
        RecursionError: it is nested too deeply.
    """
    interpreter = Interpreter(EVALUATORS, EXECUTORS)
    interpreter.names_set = cache(partial(set_in, body))
    interpreter.trace.legacy = legacy
    interpreter.trace.targets = targets or {}
    interpreter.neighbours = neighbours or interpreter.neighbours
    interpreter.execute(body, Env())
    interpreter.run_unseen()
    interpreter.trace.scopes = len(interpreter.entered)
    return interpreter.trace
