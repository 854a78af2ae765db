from kdoctor.defects import defect
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._examples import KERAS, MIRRORED
from kdoctor_lint.rules._keras_features import is_mirrored, on_keras_3

_DEFECT = defect("smoke.loss-object-in-layer")


@on_keras_3
def _judge(trace: Trace) -> Hits:
    for node, divided, strategy in trace.added:
        if divided and is_mirrored(strategy):
            yield node, "`add_loss` gets what a loss object returns, so it is divided by the number of replicas twice"


_BAD = f"""{KERAS}
class Endpoint(keras.layers.Layer):
    def __init__(self):
        super().__init__()
        self.error = keras.losses.MeanSquaredError()

    def call(self, targets, outputs):
        self.add_loss(self.error(targets, outputs))
        return outputs


{MIRRORED.removeprefix(KERAS)}with strategy.scope():
    inputs, targets = keras.Input((4,)), keras.Input((1,))
    outputs = Endpoint()(targets, keras.layers.Dense(1)(inputs))
    model = keras.Model([inputs, targets], outputs)
"""
RULE = Rule(
    id="lint.loss-object-in-layer",
    code="KD512",
    severity=Severity.WARNING,
    title="Checks for layers that add the result of a loss object to the loss under MirroredStrategy with Keras 3.",
    why=_DEFECT.why,
    fix=_DEFECT.fix,
    bad=_BAD,
    good=_BAD.replace("self.error(targets, outputs)", "tf.reduce_mean(tf.square(targets - outputs))"),
    sources=tuple(_DEFECT.source),
    judge=_judge,
)
