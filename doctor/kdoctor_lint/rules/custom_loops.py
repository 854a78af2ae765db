import ast
from collections.abc import Callable
from functools import partial
from operator import attrgetter

from kdoctor_lint.flow.trace import has_several
from kdoctor_lint.flow.values import PerExample, Place, Strategy
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.names import MIRRORED, SOME, SYNCHRONOUS
from kdoctor_lint.rules._batches import is_one_replica, shown


def _judge(trace: Trace, *, found: Callable[[Trace], list[tuple[ast.AST, Strategy]]], what: str) -> Hits:
    for node, strategy in found(trace):
        if strategy.kinds <= SYNCHRONOUS | SOME:
            yield node, what


def _judge_steps(trace: Trace) -> Hits:
    for node, strategy, place, around in trace.stepped:
        if strategy is not None and strategy.kinds <= MIRRORED and not around & trace.handed:
            where = "outside the scope of the optimizer" if place is Place.OUTSIDE else "in the scope"
            yield node, f"gradients are applied {where}, but not by a step that `strategy.run` executes"


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
    judge=partial(
        _judge, found=attrgetter("restarted"), what="every step takes the first batch, because it makes a new iterator"
    ),
)
STEP = Rule(id="lint.step-outside-run", code="KD106", severity=Severity.ERROR, judge=_judge_steps)


def _judge_losses(trace: Trace) -> Hits:
    for averaged, strategy in trace.averaged:
        size = averaged.size
        if isinstance(averaged, PerExample) or not has_several(strategy):
            continue
        if size is not None and is_one_replica(trace, size):
            yield averaged.node, f"loss is divided by {shown(size)} instead of the global batch size"
        elif size is None:
            what = averaged.what or "loss is the mean over one replica's batch"
            verb = "are not divided by the number of replicas" if averaged.what else ""
            yield averaged.node, f"{what} {verb}".rstrip() + ", but gradients are summed over replicas"
    for node, reduced_by in trace.reduced:
        if has_several(reduced_by):
            yield node, "losses that are divided by the number of replicas are averaged, so the result is too small"


def _judge_sums(trace: Trace) -> Hits:
    for averaged, strategy in trace.averaged:
        if isinstance(averaged, PerExample) and has_several(strategy):
            yield averaged.node, "losses of the examples are summed, so the step grows with the batch"


LOSS = Rule(id="lint.loss-not-scaled", code="KD206", severity=Severity.WARNING, judge=_judge_losses)
SUM = Rule(id="lint.summed-loss", code="KD211", severity=Severity.INFO, judge=_judge_sums)
