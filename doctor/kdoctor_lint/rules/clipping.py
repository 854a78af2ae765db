import ast

from kdoctor.defects import defect
from kdoctor.text.lists import some
from kdoctor_lint.flow.trace import Compiled
from kdoctor_lint.flow.values import Optimizer, Place, Strategy
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.names import MIRRORED, SOME
from kdoctor_lint.rules._keras_features import OLDEST, SOURCE_FROM_OLDEST, is_mirrored, on_keras_3, releases


@on_keras_3
def _judge(trace: Trace) -> Hits:
    compiled = [(event.optimizer, _trained_by(event)) for event in trace.compiled if is_mirrored(_trained_by(event))]
    used = [(made, strategy) for made, strategy in trace.used if isinstance(made, Optimizer)]
    for optimizer, strategy in (*compiled, *used):
        if optimizer is not None and optimizer.clipping and is_mirrored(strategy, MIRRORED):
            options = some([f"`{option}`" for option in optimizer.clipping])
            summary = f"{options} limits the gradient of each replica, not their sum"
            yield optimizer.node, f"{summary}{releases(trace, OLDEST)}"
    for node, strategy in trace.clipped:
        if is_mirrored(strategy, MIRRORED | SOME):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else "clipping"
            yield node, f"`{called}` limits the gradient of each replica, not their sum"


def _trained_by(event: Compiled) -> Strategy | None:
    made = event.optimizer
    return event.home or (made.strategy if made is not None and made.place is Place.INSIDE else None)


RULE = Rule(
    id="lint.clipping",
    code="KD501",
    severity=Severity.ERROR,
    sources=(*defect("smoke.clipping").source, SOURCE_FROM_OLDEST),
    judge=_judge,
)
