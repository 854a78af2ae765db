from kdoctor.defects import defect
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._keras_features import is_mirrored, on_keras_3

_DEFECT = defect("smoke.loss-object-in-layer")


@on_keras_3
def _judge(trace: Trace) -> Hits:
    for node, divided, strategy in trace.added:
        if divided and is_mirrored(strategy):
            yield node, "`add_loss` gets what a loss object returns, so it is divided by the number of replicas twice"


RULE = Rule(
    id="lint.loss-object-in-layer",
    code="KD512",
    severity=Severity.WARNING,
    title="Checks for layers that add the result of a loss object to the loss under MirroredStrategy with Keras 3.",
    why=_DEFECT.why,
    fix=_DEFECT.fix,
    sources=tuple(_DEFECT.source),
    judge=_judge,
)
