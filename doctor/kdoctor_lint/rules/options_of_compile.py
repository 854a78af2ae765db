import ast
from collections.abc import Callable
from functools import partial
from operator import attrgetter

from kdoctor.defects import defect
from kdoctor_lint.flow.trace import Compiled
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._keras_features import SOURCE, is_mirrored, on_keras_3, releases


@on_keras_3
def _judge(trace: Trace, *, found: Callable[[Compiled], ast.AST | None], what: str) -> Hits:
    """What ``compile`` gets that Keras 3 gets wrong on several replicas."""
    for event in trace.compiled:
        node = found(event)
        if node is not None and is_mirrored(event.home):
            yield node, f"{what.format(event.scalar_loss)}{releases(trace)}"


def _of_one_number(event: Compiled) -> ast.AST | None:
    return event.node if event.scalar_loss else None


def _overwriting(event: Compiled) -> ast.AST | None:
    return event.optimizer.node if event.optimizer is not None and event.optimizer.overwrites else None


EMA = Rule(
    id="lint.ema-overwrite",
    code="KD507",
    severity=Severity.ERROR,
    sources=(*defect("smoke.ema-overwrite").source, SOURCE),
    judge=partial(_judge, found=_overwriting, what="`ema_overwrite_frequency` fails on several replicas"),
)
LOSS = Rule(
    id="lint.scalar-loss",
    code="KD505",
    severity=Severity.ERROR,
    sources=(*defect("smoke.scalar-loss").source, SOURCE),
    judge=partial(_judge, found=_of_one_number, what="`{}` returns one number, so gradients are summed over replicas"),
)
STEPS = Rule(
    id="lint.steps-per-execution",
    code="KD502",
    severity=Severity.ERROR,
    sources=(*defect("smoke.steps-per-execution").source, SOURCE),
    judge=partial(_judge, found=attrgetter("steps"), what="`steps_per_execution` above 1 fails on several replicas"),
)
