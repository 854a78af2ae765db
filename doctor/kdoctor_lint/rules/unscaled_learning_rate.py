from kdoctor_lint.flow.trace import Fitted
from kdoctor_lint.flow.values import Dataset, Number
from kdoctor_lint.model import Hits, Rule, Severity, Trace
from kdoctor_lint.rules._batches import count_names, shown, splits
from kdoctor_lint.rules._examples import training

_SCHEDULES = frozenset({"LearningRateScheduler", "ReduceLROnPlateau"})
_SCALING = frozenset({"SGD"})
"""Optimizers whose step is proportional to the gradient. Others normalize it, so no rule relates rate and batch."""


def _judge(trace: Trace) -> Hits:
    if trace.callbacks & _SCHEDULES:
        return
    for event in trace.fitted:
        optimizer = event.compiled.optimizer if event.compiled else None
        scales = optimizer is not None and optimizer.algorithm in _SCALING and _batch_grows(event)
        rate = optimizer.rate if optimizer and scales else None
        if optimizer and isinstance(rate, Number) and not rate.scaled and (rate.names or rate.value is not None):
            constant = f"learning rate stays {shown(rate) if rate.value is None else format(rate.value, 'g')}"
            yield optimizer.node, f"{constant} while the batch size grows with the number of replicas"


def _batch_grows(event: Fitted) -> bool:
    size = event.data.batch if isinstance(event.data, Dataset) else event.batch_size
    return splits(event.home) and isinstance(size, Number) and (size.scaled or bool(size.product and count_names(size)))


_BAD = training("""strategy = tf.distribute.MirroredStrategy()
batch_size = 32 * strategy.num_replicas_in_sync
dataset = tf.data.Dataset.from_tensor_slices(arrays).batch(batch_size).prefetch(tf.data.AUTOTUNE)
""").replace('"adam"', "keras.optimizers.SGD(learning_rate=0.1)")
RULE = Rule(
    id="lint.unscaled-learning-rate",
    code="KD205",
    severity=Severity.INFO,
    title="Checks for constant learning rates of SGD with a batch size that grows with the number of replicas.",
    why="""A batch eight times as large means an eighth of the steps, each with less noise. With SGD, the best learning
rate grows roughly in proportion, after a warm-up. A learning rate tuned on one device trains more slowly than
necessary on eight. Adam and similar optimizers normalize their steps and are not reported.""",
    fix="Scale the learning rate with `strategy.num_replicas_in_sync`.",
    bad=_BAD,
    good=_BAD.replace("    model.compile", "    rate = 0.1 * strategy.num_replicas_in_sync\n    model.compile").replace(
        "=0.1", "=rate"
    ),
    sources=("https://arxiv.org/abs/1706.02677", "https://www.tensorflow.org/guide/distributed_training"),
    judge=_judge,
)
