from functools import partial

from kdoctor_lint.flow.values import Made, Metric, Optimizer, Place
from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace
from kdoctor_lint.rules._scopes import compiled_inside, differ, used_inside

_SOURCE = "https://www.tensorflow.org/tutorials/distribute/custom_training"


def _judge(trace: Trace, *, kind: type[Made], what: str) -> Hits:
    given = [(made, event) for event in compiled_inside(trace) for made in (event.optimizer, *event.metrics)]
    compiled = [(made, event) for made, event in given if isinstance(made, kind)]
    for made in (*(made for made, _ in compiled), *used_inside(trace, kind)):
        if made.place is Place.OUTSIDE:
            yield made.node, f"{what} is created outside `strategy.scope()` but used inside it"
    for made, event in compiled:
        if made.place is Place.INSIDE and differ(made.strategy, event.strategy):
            yield made.node, f"{what} is created in the scope of another strategy than it is used in"


RULE = Rule(
    id="lint.optimizer-outside-scope",
    code="KD103",
    severity=Severity.ERROR,
    sources=(_SOURCE, MEASURED),
    judge=partial(_judge, kind=Optimizer, what="optimizer"),
)
METRICS = Rule(
    id="lint.metrics-outside-scope",
    code="KD104",
    severity=Severity.WARNING,
    judge=partial(_judge, kind=Metric, what="metric"),
)
