from kdoctor.defects import defect
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._keras_features import SOURCE, is_mirrored, on_keras_3, releases


@on_keras_3
def _judge(trace: Trace) -> Hits:
    for event in trace.compiled:
        if event.scalar_loss and is_mirrored(event.home):
            message = f"`{event.scalar_loss}` returns one number, so gradients are summed over replicas"
            yield event.node, f"{message}{releases(trace)}"


RULE = Rule(
    id="lint.scalar-loss",
    code="KD505",
    severity=Severity.ERROR,
    title="Checks for losses that are one number for the batch under MirroredStrategy with Keras 3.",
    fix="Return the loss of each example: `kdoctor explain --reproduce scalar-loss` shows it.",
    sources=(*defect("smoke.scalar-loss").source, SOURCE),
    judge=_judge,
)
