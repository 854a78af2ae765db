from kdoctor.defects import defect
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._keras_features import is_mirrored, on_keras_3

_DEFECT = defect("smoke.synchronized-added-loss")


@on_keras_3
def _judge(trace: Trace) -> Hits:
    for node, _, strategy in trace.added:
        if is_mirrored(strategy) and any(strategy is other for other in trace.synchronized):
            yield node, "what a layer adds to the loss is mixed up between replicas by synchronized BatchNormalization"


RULE = Rule(
    id="lint.synchronized-added-loss",
    code="KD513",
    severity=Severity.WARNING,
    title="Checks for layers that add to the loss, next to synchronized BatchNormalization, with Keras 3.",
    why=_DEFECT.why,
    fix=_DEFECT.fix,
    sources=tuple(_DEFECT.source),
    judge=_judge,
)
