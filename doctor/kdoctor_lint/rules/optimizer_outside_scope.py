from kdoctor_lint.flow.values import Optimizer, Place
from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace
from kdoctor_lint.rules._scopes import compiled_inside, differ, used_inside


def _judge(trace: Trace) -> Hits:
    optimizers = [event.optimizer for event in compiled_inside(trace) if event.optimizer is not None]
    for optimizer in (*optimizers, *used_inside(trace, Optimizer)):
        if optimizer.place is Place.OUTSIDE:
            yield optimizer.node, "optimizer is created outside `strategy.scope()` but used inside it"
    for event in compiled_inside(trace):
        made = event.optimizer
        if made is not None and made.place is Place.INSIDE and differ(made.strategy, event.strategy):
            yield made.node, "optimizer is created in the scope of another strategy than it is used in"


RULE = Rule(
    id="lint.optimizer-outside-scope",
    code="KD103",
    severity=Severity.ERROR,
    sources=("https://www.tensorflow.org/tutorials/distribute/custom_training", MEASURED),
    judge=_judge,
)
