"""What a job derives from the classes of Keras, as their documentation describes it."""

from typing import NamedTuple


class Own(NamedTuple):
    """A class or function of the job's own."""

    kind: str
    """What it is used as: ``layers``, ``losses``, ``metrics``, or ``model``."""
    used: str
    """The source that uses it."""
    source: str


OWN = {
    "layer that counts examples": Own("layers", "Counter()", """\
@keras.saving.register_keras_serializable()
class Counter(keras.layers.Layer):
    def build(self, shape):
        self.seen = self.add_weight(shape=(), initializer="zeros", trainable=False)

    def call(self, x):
        self.seen.assign(self.seen + tf.cast(tf.shape(x)[0], "float32"))
        return x"""),
    "layer with a running mean": Own("layers", "Running()", """\
@keras.saving.register_keras_serializable()
class Running(keras.layers.Layer):
    def build(self, shape):
        self.mean = self.add_weight(shape=shape[-1:], initializer="zeros", trainable=False)

    def call(self, x):
        self.mean.assign(0.9 * self.mean + 0.1 * tf.reduce_mean(x, axis=list(range(len(x.shape) - 1))))
        return x"""),
    "layer that adds a loss": Own("layers", "Penalty()", """\
@keras.saving.register_keras_serializable()
class Penalty(keras.layers.Layer):
    def call(self, x):
        self.add_loss(0.1 * tf.reduce_sum(x * x))
        return x"""),
    "layer with the batch's mean": Own("layers", "Centred()", """\
@keras.saving.register_keras_serializable()
class Centred(keras.layers.Layer):
    def call(self, x):
        return x - tf.reduce_mean(x, axis=0, keepdims=True)"""),
    "loss per example": Own("losses", "per_example", """\
def per_example(true, predicted):
    return tf.reduce_mean((true - predicted) ** 2, axis=-1)"""),
    "loss in one number": Own("losses", "in_one_number", """\
def in_one_number(true, predicted):
    return tf.reduce_mean((true - predicted) ** 2)"""),
    "loss over pairs": Own("losses", "pairs", """\
def pairs(true, predicted):
    pairs = predicted @ tf.transpose(predicted)
    return tf.reduce_mean((true - predicted) ** 2, -1) + tf.reduce_mean(pairs, -1)"""),
    "metric that keeps a maximum": Own("metrics", "Largest()", """\
@keras.saving.register_keras_serializable()
class Largest(keras.metrics.Metric):
    def __init__(self, name="largest", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.value = self.add_weight(shape=(), initializer="zeros", name="value")

    def update_state(self, true, predicted, sample_weight=None):
        self.value.assign(tf.maximum(self.value, tf.reduce_max(abs(true - predicted))))

    def result(self):
        return self.value"""),
    "metric that counts batches": Own("metrics", "Batches()", """\
@keras.saving.register_keras_serializable()
class Batches(keras.metrics.Metric):
    def __init__(self, name="batches", dtype=None):
        super().__init__(name=name, dtype=dtype)
        self.value = self.add_weight(shape=(), initializer="zeros", name="value")

    def update_state(self, true, predicted, sample_weight=None):
        self.value.assign_add(1.0)

    def result(self):
        return self.value"""),
    "compute_loss that averages": Own("model", "Averages", """\
@keras.saving.register_keras_serializable()
class Averages(keras.Model):
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        return tf.reduce_mean((y - y_pred) ** 2)"""),
    "train_step of the guide": Own("model", "Guide", """\
@keras.saving.register_keras_serializable()
class Guide(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        self.optimizer.apply_gradients(
            zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        )
        return {"loss": loss}"""),
    "train_step without call": Own("model", "WithoutCall", """\
@keras.saving.register_keras_serializable()
class WithoutCall(keras.Model):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.part = keras.Model(inputs, outputs)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((y - self.part(x, training=True)) ** 2)
        weights = self.part.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return {"loss": loss}"""),
}  # fmt: skip
"""By what it is."""
