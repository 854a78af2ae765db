import ast
from collections.abc import Callable
from functools import partial
from operator import attrgetter

from kdoctor.text.lists import some
from kdoctor_lint.flow.trace import Compiled
from kdoctor_lint.flow.values import Optimizer, Place, Strategy
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.names import MIRRORED, SOME
from kdoctor_lint.rules._keras_features import OLDEST, is_mirrored, on_keras_3, releases


@on_keras_3
def _judge(trace: Trace, *, found: Callable[[Compiled], ast.AST | None], what: str) -> Hits:
    """What ``compile`` gets that Keras 3 gets wrong on several replicas."""
    for event in trace.compiled:
        node = found(event)
        if node is not None and is_mirrored(event.home):
            yield node, f"{what.format(event.scalar_loss)}{releases(trace)}"


def _judge_jit(trace: Trace) -> Hits:
    for event in trace.compiled:
        if not trace.legacy and event.jit and event.home and event.home.kinds <= MIRRORED:
            yield event.node, "`jit_compile=True` is set under a mirrored strategy"


def _of_one_number(event: Compiled) -> ast.AST | None:
    return event.node if event.scalar_loss else None


def _overwriting(event: Compiled) -> ast.AST | None:
    return event.optimizer.node if event.optimizer is not None and event.optimizer.overwrites else None


JIT = Rule(id="lint.jit-compile", code="KD402", severity=Severity.ERROR, judge=_judge_jit)
EMA = Rule(
    id="lint.ema-overwrite",
    code="KD507",
    severity=Severity.ERROR,
    judge=partial(_judge, found=_overwriting, what="`ema_overwrite_frequency` fails on several replicas"),
)
LOSS = Rule(
    id="lint.scalar-loss",
    code="KD505",
    severity=Severity.ERROR,
    judge=partial(_judge, found=_of_one_number, what="`{}` returns one number, so gradients are summed over replicas"),
)
STEPS = Rule(
    id="lint.steps-per-execution",
    code="KD502",
    severity=Severity.ERROR,
    judge=partial(_judge, found=attrgetter("steps"), what="`steps_per_execution` above 1 fails on several replicas"),
)


def _judge_clipping(trace: Trace) -> Hits:
    for node, strategy in trace.clipped:
        if is_mirrored(strategy, MIRRORED | SOME):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else "clipping"
            yield node, f"`{called}` limits the gradient of each replica, not their sum"
    yield from _clipping_optimizers(trace)


@on_keras_3
def _clipping_optimizers(trace: Trace) -> Hits:
    compiled = [(event.optimizer, _trained_by(event)) for event in trace.compiled if is_mirrored(_trained_by(event))]
    used = [(made, strategy) for made, strategy in trace.used if isinstance(made, Optimizer)]
    for optimizer, strategy in (*compiled, *used):
        if optimizer is not None and optimizer.clipping and is_mirrored(strategy, MIRRORED):
            options = some([f"`{option}`" for option in optimizer.clipping])
            summary = f"{options} limits the gradient of each replica, not their sum"
            yield optimizer.node, f"{summary}{releases(trace, OLDEST)}"


def _trained_by(event: Compiled) -> Strategy | None:
    made = event.optimizer
    return event.home or (made.strategy if made is not None and made.place is Place.INSIDE else None)


CLIPPING = Rule(id="lint.clipping", code="KD501", severity=Severity.ERROR, judge=_judge_clipping)
