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
    why="""Keras 3 divides the losses of the examples by the number of replicas, but not a loss that is already one
number. Gradients are then summed over the replicas instead of averaged, and fit reports a multiple of the loss.
`keras.losses.Dice` and `Tversky` without `axis`, and functions that end in a mean over everything, return one number.
tf_keras trains correctly, so scripts that use it are not reported.""",
    fix="Return the loss of each example: `kdoctor explain --reproduce scalar-loss` shows it.",
    sources=(*defect("smoke.scalar-loss").source, SOURCE),
    judge=_judge,
)
