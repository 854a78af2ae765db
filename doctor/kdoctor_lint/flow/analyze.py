"""The flow analysis: from a parsed script to its trace."""

import ast
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache, partial

from kdoctor_lint.flow.environment import Env, Function
from kdoctor_lint.flow.expressions import EVALUATORS
from kdoctor_lint.flow.interpreter import Interpreter, Neighbours
from kdoctor_lint.flow.removals import set_in
from kdoctor_lint.flow.statements import EXECUTORS
from kdoctor_lint.flow.trace import Trace


def mentioned_in(body: Sequence[ast.stmt]) -> AbstractSet[str] | None:
    """The names, attributes and strings in the code of a program. Functions of other modules may be used elsewhere."""
    nodes = (node for statement in body for node in ast.walk(statement))
    read = {getattr(node, "id", None) or getattr(node, "attr", None) or getattr(node, "value", None) for node in nodes}
    return {name for name in read if isinstance(name, str)} if "__name__" in read else None


def analyze(
    body: Sequence[ast.stmt],
    *,
    legacy: bool = False,
    targets: Mapping[str, tuple[int, int]] | None = None,
    neighbours: Neighbours | None = None,
    entry: str | None = "",
) -> Trace:
    """What a script does. The body of a notebook is that of all cells in order.

    It is ``legacy`` if it is known to use Keras 2. The targets are releases of TensorFlow and Keras, where they are not
    the newest. The entry is the function with which it starts, if it does not call it, or None for a notebook.

    Raises:
        RecursionError: it is nested too deeply.
    """
    interpreter = Interpreter(EVALUATORS, EXECUTORS)
    interpreter.names_set = cache(partial(set_in, body))
    interpreter.trace.legacy = legacy
    interpreter.trace.targets = targets or {}
    interpreter.alone = entry is None
    interpreter.neighbours = neighbours or interpreter.neighbours
    interpreter.mentioned = cache(partial(mentioned_in, body))
    env = Env()
    interpreter.execute(body, env)
    started = env.names.get(entry or "")
    if isinstance(started, Function):
        interpreter.follow(started, [], {}, spread=True)
    interpreter.run_unseen()
    interpreter.trace.scopes = len(interpreter.entered)
    return interpreter.trace
