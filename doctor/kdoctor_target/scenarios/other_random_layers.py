"""The other layers with random numbers: whether each replica draws its own, and whether a seed repeats them.

Measures for each layer: ``equal NAME``, the number of compared steps in which two replicas drew the same numbers, and
``repeats NAME``, 1 if another layer with the same seed drew the same, else 0. ``steps`` is the number of steps.
"""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List

import numpy as np
import tensorflow as tf

from kdoctor_target.runner.case import Case
from kdoctor_target.training.compared import sgd
from kdoctor_target.training.regression import EPOCHS, dense_model, make_batches
from kdoctor_target.training.replicas import make_strategy

STEPS = 3
SEED = 3
UNITS = 64
"""Elements of a mask. Two masks of rate 0.5 are equal by chance once in 2 ** 64 times."""
IMAGES = 16
PIXELS = 16

NOISE: Dict[str, Dict[str, Any]] = {
    "AlphaDropout": {"rate": 0.5},
    "GaussianDropout": {"rate": 0.5},
    "SpatialDropout1D": {"rate": 0.5},
    "GaussianNoise": {"stddev": 1.0},
}
AUGMENTATION: Dict[str, Dict[str, Any]] = {
    "RandomTranslation": {"height_factor": 0.4, "width_factor": 0.4},
    "RandomFlip": {"mode": "horizontal"},
    "RandomRotation": {"factor": 0.4},
    "RandomZoom": {"height_factor": 0.5},
    "RandomCrop": {"height": 4, "width": 4},
    "RandomContrast": {"factor": 0.9},
    "RandomBrightness": {"factor": 0.9},
}
COLORS: Dict[str, Dict[str, Any]] = {
    "RandomHue": {"factor": 0.5, "value_range": (0, 255)},
    "RandomSaturation": {"factor": 0.9},
    "RandomSharpness": {"factor": 0.9},
    "RandomGrayscale": {"factor": 0.5},
}
CHANGED = {"RandomTranslation": AUGMENTATION["RandomTranslation"]}


def noise(case: Case) -> None:
    """The relatives of Dropout."""
    _compare(case, NOISE, _ones)


def augmentation(case: Case) -> None:
    """Layers for images that Keras 2 has, too."""
    _compare(case, AUGMENTATION, _images)


def colors(case: Case) -> None:
    """Layers for images that only Keras 3 has."""
    if not any(hasattr(tf.keras.layers, name) for name in COLORS):
        case.skip("this Keras does not have these layers")
    _compare(case, COLORS, _images)


def seed_per_replica(case: Case) -> None:
    """The alternative: every generator adds the replica's index to its seed. A model with such layers trains, too."""
    if not hasattr(tf.keras, "random"):
        case.skip("Keras 2 needs no alternative: its layers have no SeedGenerator")
    strategy = _compare(case, NOISE, _ones, seed_each_replica)
    _compare_layers(case, strategy, CHANGED, _images, seed_each_replica)
    batches = make_batches(strategy.num_replicas_in_sync)
    with strategy.scope():
        plain = dense_model(tf.keras)
        hidden, out = plain.layers
        model = tf.keras.Sequential(
            [*plain.inputs, hidden, seed_each_replica(tf.keras.layers.Dropout(0.5, seed=SEED)), out]
        )
        model.compile(optimizer=sgd(), loss="mean_squared_error", jit_compile=False)
    history = model.fit(batches.dataset(), epochs=EPOCHS, verbose=0, shuffle=False).history
    case.note(losses=history["loss"])


def seed_each_replica(layer: Any) -> Any:
    """Give each replica its own random numbers, in a layer of Keras 3 that has a generator."""
    generator = getattr(layer, "seed_generator", None) or layer.generator
    draw = generator.next

    def next_of_replica(ordered: bool = True) -> Any:  # noqa: FBT001, FBT002 - the signature of Keras
        seed = draw(ordered)
        context = tf.distribute.get_replica_context()
        replica = context.replica_id_in_sync_group if context else 0  # None while the strategy builds a model
        return seed + tf.cast(tf.stack([0, replica]), seed.dtype)

    generator.next = next_of_replica
    return layer


def _ones() -> Any:
    return tf.ones((1, 4, UNITS))


def _images() -> Any:
    return tf.constant(np.random.RandomState(8).uniform(0, 255, (IMAGES, PIXELS, PIXELS, 3)).astype("float32"))


def _same(layer: Any) -> Any:
    return layer


def _compare(
    case: Case, kinds: Dict[str, Dict[str, Any]], make_inputs: Callable[[], Any], change: Callable[[Any], Any] = _same
) -> Any:
    strategy = make_strategy(case)
    case.phase("train")
    _compare_layers(case, strategy, kinds, make_inputs, change)
    return strategy


def _compare_layers(
    case: Case,
    strategy: Any,
    kinds: Dict[str, Dict[str, Any]],
    make_inputs: Callable[[], Any],
    change: Callable[[Any], Any],
) -> None:
    inputs = make_inputs()
    known = {name: options for name, options in kinds.items() if _works(name, options, inputs)}
    seeded = [name for name in known if _takes_seed(name)]
    first, second = (_draw(strategy, known, inputs, change) for _ in range(2))
    case.measure({"steps": STEPS})
    for name in known:
        equal = sum(len({part.tobytes() for part in parts}) < len(parts) for parts in first[name])
        case.measure({f"equal {name}": equal})
        if name in seeded:
            pairs = zip(first[name], second[name])
            repeats = all(np.array_equal(*both) for parts in pairs for both in zip(*parts))
            case.measure({f"repeats {name}": int(repeats)})


def _works(name: str, options: Dict[str, Any], inputs: Any) -> bool:
    """Whether this Keras has the layer, and one device can call it (AlphaDropout raises in Keras 3.6)."""
    try:
        getattr(tf.keras.layers, name)(**options)(inputs, training=True)
    except (AttributeError, TypeError):
        return False
    return True


def _takes_seed(name: str) -> bool:
    return "seed" in inspect.signature(getattr(tf.keras.layers, name).__init__).parameters


def _draw(
    strategy: Any, kinds: Dict[str, Dict[str, Any]], inputs: Any, change: Callable[[Any], Any]
) -> Dict[str, List[List[Any]]]:
    """The outputs of new layers on each replica, for each step."""
    with strategy.scope():
        layers = {}
        for name, options in kinds.items():
            seed = {"seed": SEED} if _takes_seed(name) else {}
            layers[name] = change(getattr(tf.keras.layers, name)(**options, **seed))
            layers[name](inputs)

    @tf.function  # type: ignore[untyped-decorator]  # TensorFlow has no types here
    def step() -> Any:
        return strategy.run(lambda: {name: layer(inputs, training=True) for name, layer in layers.items()})

    drawn: Dict[str, List[List[Any]]] = {name: [] for name in layers}
    for _ in range(STEPS):
        for name, outputs in step().items():
            drawn[name].append([part.numpy() for part in strategy.experimental_local_results(outputs)])
    return drawn
