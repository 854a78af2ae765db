from kdoctor.defects import defect
from kdoctor_lint.flow.values import Place
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._keras_features import SOURCE, is_mirrored, on_keras_3, releases


@on_keras_3
def _judge(trace: Trace) -> Hits:
    for node, name, model in trace.on_batch:
        if model.place is Place.INSIDE and is_mirrored(model.strategy):
            wrong = "returns its predictions" if name == "predict_on_batch" else "computes the whole batch"
            yield node, f"`{name}` {wrong} once for each replica{releases(trace)}"


RULE = Rule(
    id="lint.predict-on-batch",
    code="KD506",
    severity=Severity.WARNING,
    sources=(*defect("smoke.predict-on-batch").source, SOURCE),
    judge=_judge,
)
