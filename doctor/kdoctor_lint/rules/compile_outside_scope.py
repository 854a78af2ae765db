from kdoctor_lint.flow.trace import has_several
from kdoctor_lint.flow.values import Place
from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace
from kdoctor_lint.rules._scopes import differ


def _judge(trace: Trace) -> Hits:
    if trace.legacy:
        return
    for event in trace.compiled:
        model = event.model
        if model is None or model.place is not Place.INSIDE or not has_several(model.strategy):
            continue
        if event.place is Place.OUTSIDE and event.mixes:
            yield event.node, "model is created inside `strategy.scope()` but compiled outside it"
        elif event.place is Place.INSIDE and differ(model.strategy, event.strategy):
            yield event.node, "model is created in the scope of another strategy than it is compiled in"


RULE = Rule(
    id="lint.compile-outside-scope",
    code="KD102",
    severity=Severity.ERROR,
    sources=("https://keras.io/guides/distributed_training_with_tensorflow/", MEASURED),
    judge=_judge,
)
