import ast
from collections.abc import Callable
from functools import partial
from operator import attrgetter

from kdoctor_lint.flow.values import Strategy
from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace
from kdoctor_lint.names import MIRRORED, SOME, SYNCHRONOUS


def _judge(trace: Trace, *, found: Callable[[Trace], list[tuple[ast.AST, Strategy]]], what: str) -> Hits:
    for node, strategy in found(trace):
        if strategy.kinds <= SYNCHRONOUS | SOME:
            yield node, what


def _judge_steps(trace: Trace) -> Hits:
    for node, strategy, around in trace.stepped:
        if strategy is not None and strategy.kinds <= MIRRORED and not around & trace.handed:
            yield node, "gradients are applied in the scope, but not by a step that `strategy.run` executes"


RULE = Rule(
    id="lint.undistributed-data",
    code="KD209",
    severity=Severity.WARNING,
    judge=partial(
        _judge,
        found=attrgetter("undistributed"),
        what="every replica gets the whole batch, because the dataset is not distributed",
    ),
)
FIRST = Rule(
    id="lint.first-batch",
    code="KD210",
    severity=Severity.WARNING,
    sources=("https://www.tensorflow.org/tutorials/distribute/input", MEASURED),
    judge=partial(
        _judge, found=attrgetter("restarted"), what="every step takes the first batch, because it makes a new iterator"
    ),
)
STEP = Rule(
    id="lint.step-outside-run",
    code="KD106",
    severity=Severity.ERROR,
    sources=("https://www.tensorflow.org/tutorials/distribute/custom_training", MEASURED),
    judge=_judge_steps,
)
