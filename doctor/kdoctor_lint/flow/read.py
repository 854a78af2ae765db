"""The door to the flow analysis: from a parsed script to its trace."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from kdoctor_lint.flow.environment import Env
from kdoctor_lint.flow.expressions import EVALUATORS
from kdoctor_lint.flow.interpreter import Machine
from kdoctor_lint.flow.statements import EXECUTORS
from kdoctor_lint.flow.trace import Trace


def read(body: Sequence[ast.stmt], *, legacy: bool = False) -> Trace:
    """What a script does.

    Args:
        body: its statements; those of a notebook's cells, one after another.
        legacy: whether it is known to choose Keras 2.

    Raises:
        RecursionError: it is nested too deeply.
    """
    machine = Machine(EVALUATORS, EXECUTORS)
    machine.trace.legacy = legacy
    machine.execute(body, Env())
    machine.read_the_rest()
    return machine.trace
