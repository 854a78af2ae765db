from kdoctor_lint.flow.values import Number, Value
from kdoctor_lint.model import MEASURED, Hits, Rule, Severity, Trace
from kdoctor_lint.rules._batches import global_batches, splits
from kdoctor_lint.rules._examples import MIRRORED


def _judge(trace: Trace) -> Hits:
    if not trace.stateful or not trace.strategies or not all(map(splits, trace.strategies)):
        return
    sizes = [given for _, given, _ in global_batches(trace)]
    for node, size in trace.static_batches:
        if isinstance(size, Number) and any(_same(size, given) for given in sizes):
            yield node, "input of a stateful layer has the global batch size"


def _same(one: Number, other: Value) -> bool:
    if not isinstance(other, Number) or one.scaled != other.scaled:
        return False
    return one.scaled or (one.value is not None and one.value == other.value)


_BAD = f"""{MIRRORED}batch_size = 32 * strategy.num_replicas_in_sync
with strategy.scope():
    inputs = keras.Input((10, 4), batch_size=batch_size)
    outputs = keras.layers.LSTM(8, stateful=True)(inputs)
    model = keras.Model(inputs, outputs)
    model.compile(optimizer="adam", loss="mse")
model.fit(arrays, targets, batch_size=batch_size)
"""
_GOOD = _BAD.replace("batch_size = 32 * strategy.num_replicas_in_sync", "per_replica = 32")
_GOOD = _GOOD.replace("4), batch_size=batch_size", "4), batch_size=per_replica")
_GOOD = _GOOD.replace("=batch_size", "=per_replica * strategy.num_replicas_in_sync")
RULE = Rule(
    id="lint.static-batch",
    code="KD208",
    severity=Severity.ERROR,
    title="Checks for stateful layers whose input has the global batch size.",
    why="""Each replica gets its part of the batch, so an input with the global batch size never fits. A stateful
recurrent layer then raises a ValueError in the first step. Layers without state accept another size.""",
    fix="Give the input the batch size of one replica.",
    bad=_BAD,
    good=_GOOD,
    sources=("https://keras.io/guides/working_with_rnns/", MEASURED),
    judge=_judge,
)
