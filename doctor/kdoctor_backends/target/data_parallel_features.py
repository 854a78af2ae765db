"""Features of real jobs with ``keras.distribution.DataParallel`` on JAX, compared with one device.

Measures: see ``kdoctor_backends.target.jax_compared``; of clipped jobs ``reference_way`` and ``longest_way``, see
``kdoctor_target.training.clipping``; of random layers ``masks``, ``equal_masks`` and ``repeated_masks``, see
``kdoctor_target.training.random_numbers``; of mixed precision, see ``kdoctor_target.scenarios.mixed_precision``.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List

import numpy as np

from kdoctor_backends.target.jax_compared import History, JaxJob, compare, compare_state, fit
from kdoctor_backends.target.jax_models import MODELS
from kdoctor_target.runner.case import Case
from kdoctor_target.training.families import CLIPS, FAMILIES, LONGEST, OPTIMIZERS, optimizer
from kdoctor_target.training.jax import data_parallel
from kdoctor_target.training.regression import (
    EPOCHS,
    FEATURES,
    LEARNING_RATE,
    PER_REPLICA,
    STEPS,
    Batches,
    dense_model,
    make_batches,
)

CLASSES = 3
BOUNDARY = 0.5
"""Targets above it are the positive class."""
SEED = 3
SIDE = 8
"""Height and width of the images."""
IMAGES = 64
"""Images on each device. Two devices flip all of them alike by chance once in 2 ** 64 times."""


def clips(way: str) -> Callable[[Case], None]:
    """A case whose SGD clips in this way."""

    def run(case: Case) -> None:
        trained = compare(case, JaxJob(lambda keras: keras.optimizers.SGD(LEARNING_RATE, **{way: CLIPS[way]}))).single
        ways = [float(np.linalg.norm(end - start)) for start, end in zip(trained.started, trained.model.get_weights())]
        case.measure({"reference_way": max(ways), "longest_way": EPOCHS * STEPS * LEARNING_RATE * LONGEST[way]})

    return run


def optimizes(name: str, make: Callable[[Any], Any]) -> Callable[[Case], None]:
    """A case for an optimizer, skipped where this Keras lacks it."""

    def run(case: Case) -> None:
        import keras

        if not hasattr(keras.optimizers, name):
            case.skip(f"this Keras has no optimizer {name}")
        compare_state(case, compare(case, JaxJob(make)))

    return run


def steps_per_execution(case: Case) -> None:
    """Two steps in each call of the compiled function, and one on one device."""
    compare(case, JaxJob(compile=lambda _: {"steps_per_execution": 2}), JaxJob())


def metrics(case: Case) -> None:
    """Metrics that are not the mean of those of parts of a batch, for training and validation data."""

    def data(devices: int) -> Batches:
        batches = make_batches(devices)
        return batches._replace(targets=(batches.targets > BOUNDARY).astype("float32"))

    def compiled(keras: Any) -> Dict[str, Any]:
        kinds = keras.metrics
        chosen = [kinds.AUC(name="auc"), kinds.Precision(name="precision"), kinds.RootMeanSquaredError(name="rmse")]
        return {"loss": "binary_crossentropy", "metrics": ["accuracy", *chosen]}

    def train(model: Any, batches: Batches) -> History:
        checked = {"validation_data": (batches.inputs, batches.targets), "validation_batch_size": batches.global_batch}
        return fit(model, batches, **checked)

    made = lambda keras: dense_model(keras, activation="sigmoid")  # noqa: E731 - one use
    compare(case, JaxJob(model=made, compile=compiled, fit=train, data=data))


def metrics_of_classes(case: Case) -> None:
    """Top-k accuracy and F1, which count over all examples of the epoch."""

    def data(devices: int) -> Batches:
        batches = make_batches(devices)
        return batches._replace(
            targets=np.eye(CLASSES, dtype="float32")[np.argmax(batches.inputs[:, :CLASSES], axis=1)]
        )

    def compiled(keras: Any) -> Dict[str, Any]:
        chosen = [keras.metrics.TopKCategoricalAccuracy(k=2, name="top2"), keras.metrics.F1Score("macro", name="f1")]
        return {"loss": "categorical_crossentropy", "metrics": chosen}

    made = lambda keras: dense_model(keras, outputs=CLASSES, activation="softmax")  # noqa: E731 - one use
    compare(case, JaxJob(model=made, compile=compiled, data=data))


def run_eagerly(case: Case) -> None:
    """Steps that are not compiled, compared with compiled ones on one device."""
    compare(case, JaxJob(compile=lambda _: {"run_eagerly": True}), JaxJob())


def sample_weight(case: Case) -> None:
    """Different weights for the examples; those of the last device are all zero."""

    def data(devices: int) -> Batches:
        batches = make_batches(devices)
        weights = np.random.RandomState(5).uniform(0.0, 2.0, len(batches.inputs)).astype("float32")
        places: Any = np.arange(len(weights)) % batches.global_batch
        weights[places >= batches.global_batch - PER_REPLICA] = 0.0
        return batches._replace(sample_weights=weights)

    compare(case, JaxJob(compile=lambda _: {"weighted_metrics": ["mae"]}, data=data))


def class_weight(case: Case) -> None:
    """Different weights for the classes."""

    def data(devices: int) -> Batches:
        batches = make_batches(devices)
        return batches._replace(targets=np.argmax(batches.inputs[:, :CLASSES], axis=1))

    job = JaxJob(
        model=lambda keras: dense_model(keras, outputs=CLASSES, activation="softmax"),
        compile=lambda _: {"loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"]},
        fit=lambda model, batches: fit(model, batches, class_weight={0: 1.0, 1: 3.0, 2: 0.5}),
        data=data,
    )
    compare(case, job)


def regularizers(case: Case) -> None:
    """L1 and L2 of the weights, and the activity of a layer."""

    def model(keras: Any) -> Any:
        made = dense_model(keras)
        for layer in made.layers:
            layer.kernel_regularizer = keras.regularizers.L1L2(0.01, 0.02)
        made.get_layer("hidden").activity_regularizer = keras.regularizers.L2(0.1)
        return made

    compare(case, JaxJob(model=model))


def dropout(case: Case) -> None:
    """Training with Dropout, whose masks are those of one device, and the masks of the devices."""

    def model(keras: Any) -> Any:
        hidden, out = dense_model(keras).layers
        return keras.Sequential([keras.Input((FEATURES,)), hidden, keras.layers.Dropout(0.5, seed=SEED), out])

    distribution = compare(case, JaxJob(model=model)).distribution
    _compare_masks(case, distribution, [("Dropout", {"rate": 0.5})])


def random_layers(case: Case) -> None:
    """What other random layers draw on each device."""
    made = [
        ("GaussianNoise", {"stddev": 1.0}),
        ("RandomTranslation", {"height_factor": 0.4, "width_factor": 0.4}),
        ("RandomFlip", {"mode": "horizontal"}),
    ]
    _compare_masks(case, data_parallel(case), made)


def _compare_masks(case: Case, distribution: Any, made: "List[Any]") -> None:
    """Every device gets the same images, so that equal results are equal random numbers. Each layer is made twice."""
    import keras

    class Draws(keras.Model):  # type: ignore[misc]  # Keras has no types here
        """Calls layers as in a training, also in predict."""

        def __init__(self) -> None:
            super().__init__()
            self.drawing = [getattr(keras.layers, name)(seed=SEED, **options) for name, options in made * 2]

        def call(self, inputs: Any) -> Any:
            return [layer(inputs, training=True) for layer in self.drawing]

    devices, steps = distribution.device_mesh.devices.size, 2
    image = np.arange(SIDE * SIDE, dtype="float32").reshape(SIDE, SIDE, 1) + 1.0
    images = np.stack([image] * (IMAGES * devices * steps)) / float(SIDE * SIDE)
    case.phase("train")
    with distribution.scope():
        model: Any = Draws()
        drawn = model.predict(images, batch_size=IMAGES * devices, verbose=0)
    shares = [np.asarray(one).reshape(steps, devices, -1) for one in drawn]
    first, second = ([step for layer in half for step in layer] for half in (shares[: len(made)], shares[len(made) :]))
    equal = sum(len({share.tobytes() for share in step}) < devices for step in first)
    repeated = sum(np.array_equal(*pair) for pair in zip(first, second))
    case.measure({"masks": len(first), "equal_masks": equal, "repeated_masks": repeated})


def precision(policy: str) -> Callable[[Case], None]:
    """A case with this policy, compared with float32 on one device."""

    def run(case: Case) -> None:
        model = compare(case, JaxJob(), policy=policy).parallel.model
        scale = getattr(model.optimizer, "dynamic_scale", None)
        single = sum(np.asarray(variable.value).dtype == np.float32 for variable in model.trainable_variables)
        case.measure({"loss_scale": None if scale is None else float(scale.value), "variables_float32": single})

    return run


def _decays(keras: Any) -> Any:
    return keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.2, decay_steps=4, decay_rate=0.5))


def _scaled(keras: Any) -> Any:
    inner = keras.optimizers.SGD(LEARNING_RATE)
    return keras.optimizers.LossScaleOptimizer(inner, initial_scale=1024.0, dynamic_growth_steps=4)


OPTIMIZED = {
    **{name: one for name, one in FAMILIES.items() if name != "sgd"},
    **{name: OPTIMIZERS[name] for name in ("nesterov", "amsgrad", "centered-rmsprop")},
    "weight-decay": optimizer("SGD", 0.1, weight_decay=0.1),
    "ema": optimizer("SGD", 0.1, use_ema=True, ema_momentum=0.8),
    "accumulation": optimizer("SGD", 0.1, gradient_accumulation_steps=2),
}

CASES = {
    "clipnorm": clips("clipnorm"),
    "global-clipnorm": clips("global_clipnorm"),
    "clipvalue": clips("clipvalue"),
    "steps-per-execution": steps_per_execution,
    **{name: optimizes(one.name, one.make) for name, one in OPTIMIZED.items()},
    "schedule": optimizes("SGD", _decays),
    "loss-scale": optimizes("LossScaleOptimizer", _scaled),
    "metrics": metrics,
    "metrics-of-classes": metrics_of_classes,
    "run-eagerly": run_eagerly,
    "sample-weight": sample_weight,
    "class-weight": class_weight,
    "regularizers": regularizers,
    "dropout": dropout,
    "random-layers": random_layers,
    **MODELS,
    "float16": precision("mixed_float16"),
    "bfloat16": precision("mixed_bfloat16"),
}
