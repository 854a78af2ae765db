"""Names of TensorFlow and Keras that newer releases no longer have, as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

_TF2 = "https://www.tensorflow.org/guide/migrate"
_TF_2_4 = "https://github.com/tensorflow/tensorflow/releases/tag/v2.4.0"
_TF_2_6 = "https://github.com/tensorflow/tensorflow/releases/tag/v2.6.0"
_TF_2_16 = "https://github.com/tensorflow/tensorflow/releases/tag/v2.16.1"
_KERAS_3 = "https://keras.io/guides/migrating_to_keras_3/"


class Removed(NamedTuple):
    """Something that was removed."""

    name: str
    """The canonical name, a method (``Model.fit_generator``) or an argument (``Model.fit(workers=)``)."""
    package: str
    """``tensorflow`` or ``keras``."""
    since: tuple[int, int]
    """The first release of the package without it."""
    instead: str
    """What to use, as code."""
    source: str


def _listed(package: str, since: tuple[int, int], source: str, table: Mapping[str, str]) -> Iterator[Removed]:
    for name, instead in table.items():
        yield Removed(name, package, since, instead, source)


_ENTRIES = (
    *_listed("tensorflow", (2, 0), _TF2, {
        "tensorflow.contrib": "tensorflow_addons, tensorflow_io or core TensorFlow",
        "tensorflow.Session": "eager execution and tf.function",
        "tensorflow.InteractiveSession": "eager execution",
        "tensorflow.ConfigProto": "tf.config",
        "tensorflow.GPUOptions": "tf.config.experimental.set_memory_growth",
        "tensorflow.placeholder": "arguments of a tf.function",
        "tensorflow.global_variables_initializer": "nothing, because variables are initialized when created",
        "tensorflow.global_variables": "Model.variables",
        "tensorflow.trainable_variables": "Model.trainable_variables",
        "tensorflow.get_default_graph": "tf.function",
        "tensorflow.reset_default_graph": "keras.utils.clear_session",
        "tensorflow.get_collection": "Model.losses or Model.variables",
        "tensorflow.variable_scope": "keras layers",
        "tensorflow.get_variable": "tf.Variable",
        "tensorflow.AUTO_REUSE": "one keras layer that is called several times",
        "tensorflow.assign": "tf.Variable.assign",
        "tensorflow.app": "absl.app",
        "tensorflow.flags": "absl.flags",
        "tensorflow.logging": "absl.logging",
        "tensorflow.gfile": "tf.io.gfile",
        "tensorflow.layers": "keras.layers",
        "tensorflow.log": "tf.math.log",
        "tensorflow.set_random_seed": "tf.random.set_seed",
        "tensorflow.random_normal": "tf.random.normal",
        "tensorflow.random_uniform": "tf.random.uniform",
        "tensorflow.truncated_normal": "tf.random.truncated_normal",
        "tensorflow.to_float": "tf.cast",
        "tensorflow.to_int32": "tf.cast",
        "tensorflow.enable_eager_execution": "nothing, because eager execution is the default",
        "tensorflow.FixedLenFeature": "tf.io.FixedLenFeature",
        "tensorflow.parse_single_example": "tf.io.parse_single_example",
        "tensorflow.decode_raw": "tf.io.decode_raw",
        "tensorflow.read_file": "tf.io.read_file",
        "tensorflow.image.resize_images": "tf.image.resize",
        "tensorflow.nn.softmax_cross_entropy_with_logits_v2": "tf.nn.softmax_cross_entropy_with_logits",
        "tensorflow.summary.FileWriter": "tf.summary.create_file_writer",
        "tensorflow.train.AdamOptimizer": "keras.optimizers.Adam",
        "tensorflow.train.AdagradOptimizer": "keras.optimizers.Adagrad",
        "tensorflow.train.GradientDescentOptimizer": "keras.optimizers.SGD",
        "tensorflow.train.MomentumOptimizer": "keras.optimizers.SGD(momentum=...)",
        "tensorflow.train.RMSPropOptimizer": "keras.optimizers.RMSprop",
        "tensorflow.train.MonitoredTrainingSession": "Model.fit",
        "tensorflow.train.Saver": "tf.train.Checkpoint",
        "tensorflow.train.Server": "tf.distribute.Server",
        "tensorflow.train.SessionRunHook": "keras.callbacks.Callback",
        "tensorflow.train.SyncReplicasOptimizer": "tf.distribute.MultiWorkerMirroredStrategy",
        "tensorflow.train.get_or_create_global_step": "Optimizer.iterations",
        "tensorflow.train.replica_device_setter": "tf.distribute.ParameterServerStrategy",
    }),
    *_listed("tensorflow", (2, 4), _TF_2_4, {
        "Strategy.experimental_run_v2": "Strategy.run",
        "Strategy.experimental_make_numpy_dataset": "tf.data.Dataset.from_tensor_slices",
    }),
    *_listed("tensorflow", (2, 6), _TF_2_6, {
        "tensorflow.train.experimental.enable_mixed_precision_graph_rewrite":
            'keras.mixed_precision.set_global_policy("mixed_float16")',
        "Model.predict_classes": "Model.predict and argmax",
        "Model.predict_proba": "Model.predict",
    }),
    *_listed("tensorflow", (2, 16), _TF_2_16, {
        "tensorflow.estimator": "keras.Model and Model.fit",
        "keras.estimator": "keras.Model and Model.fit",
    }),
    *_listed("keras", (3, 0), _KERAS_3, {
        "Optimizer(lr=)": "learning_rate=",
        "Model.fit_generator": "Model.fit",
        "Model.evaluate_generator": "Model.evaluate",
        "Model.predict_generator": "Model.predict",
        "Model.fit(workers=)": "workers= of keras.utils.PyDataset",
        "Model.fit(use_multiprocessing=)": "use_multiprocessing= of keras.utils.PyDataset",
        "Model.fit(max_queue_size=)": "max_queue_size= of keras.utils.PyDataset",
        "Model.compile(experimental_steps_per_execution=)": "steps_per_execution=",
        "Model.compile(sample_weight_mode=)": "weights of one dimension per time step",
        "ModelCheckpoint(period=)": 'save_freq="epoch"',
        "ModelCheckpoint without .weights.h5": 'a path that ends in ".weights.h5"',
        "ModelCheckpoint without .keras": 'a path that ends in ".keras"',
        "Model.save without .keras": 'a path that ends in ".keras", or Model.export',
        "Model.save_weights without .weights.h5": 'a path that ends in ".weights.h5"',
        "TensorBoard(write_grads=)": "tf.summary.histogram in train_step",
        "keras.experimental": "the stable API, such as keras.optimizers.schedules",
        "keras.utils.experimental": "tf.data.Dataset",
        "keras.layers.CuDNNGRU": "keras.layers.GRU",
        "keras.layers.CuDNNLSTM": "keras.layers.LSTM",
        "keras.layers.DenseFeatures": "keras.utils.FeatureSpace",
        "keras.layers.LocallyConnected1D": "a custom layer",
        "keras.layers.LocallyConnected2D": "a custom layer",
        "keras.layers.experimental": "keras.layers",
        "keras.mixed_precision.experimental": "keras.mixed_precision.set_global_policy",
        "keras.optimizers.legacy": "keras.optimizers",
        "keras.utils.np_utils": "keras.utils",
    }),
)  # fmt: skip
REMOVED: Mapping[str, Removed] = {entry.name: entry for entry in _ENTRIES}
"""Every entry by its name."""


def removed_in(name: str) -> Removed | None:
    """The entry of a full name or of a module that it is in."""
    while name:
        if name in REMOVED:
            return REMOVED[name]
        name = name.rpartition(".")[0]
    return None
