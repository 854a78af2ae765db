from kdoctor.defects import defect
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._keras_features import is_mirrored, on_keras_3

_TWICE, _MIXED = defect("smoke.loss-object-in-layer"), defect("smoke.synchronized-added-loss")


@on_keras_3
def _divided_twice(trace: Trace) -> Hits:
    for node, divided, strategy in trace.added:
        if divided and is_mirrored(strategy):
            yield node, "`add_loss` gets what a loss object returns, so it is divided by the number of replicas twice"


@on_keras_3
def _mixed_up(trace: Trace) -> Hits:
    for node, _, strategy in trace.added:
        if is_mirrored(strategy) and any(strategy is other for other in trace.synchronized):
            yield node, "what a layer adds to the loss is mixed up between replicas by synchronized BatchNormalization"


OBJECT = Rule(
    id="lint.loss-object-in-layer",
    code="KD512",
    severity=Severity.WARNING,
    why=_TWICE.why,
    fix=_TWICE.fix,
    sources=tuple(_TWICE.source),
    judge=_divided_twice,
)
SYNCHRONIZED = Rule(
    id="lint.synchronized-added-loss",
    code="KD513",
    severity=Severity.WARNING,
    why=_MIXED.why,
    fix=_MIXED.fix,
    sources=tuple(_MIXED.source),
    judge=_mixed_up,
)
