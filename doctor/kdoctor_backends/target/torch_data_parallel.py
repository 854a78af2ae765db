"""Keras on torch over several processes: DistributedDataParallel as in the guide of Keras, Model.fit without it.

Measures: ``ranks differ``, the largest difference of a weight between two ranks; ``statistics differ``, the same of the
moving statistics of BatchNormalization; ``others_s``, the seconds from the loss of a rank until the others ended;
``devices used``, those that a model in the scope of DataParallel is on; of Dropout ``masks``, the number of masks that
each rank drew, ``equal_masks``, how many of them were equal on two ranks with the same seed, and
``equal_masks_of_ranks`` with the rank added to the seed; ``metric NAME`` of all ranks together, ``reference NAME`` on
one device, and ``part NAME`` of the first rank alone.
"""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Optional

import numpy as np

from kdoctor_backends.target.torch import (
    Loop,
    add_up,
    compare,
    largest_difference,
    left_weights,
    require,
    run_ranks,
    train_loop,
    train_reference,
)
from kdoctor_target.runner.case import Case
from kdoctor_target.training.families import NORM
from kdoctor_target.training.regression import EPOCHS, LEARNING_RATE, Batches, dense_model, make_batches
from kdoctor_target.training.seeded import attending, sequences
from kdoctor_target.training.workers import expect_all_trained

PATIENCE_S = 25.0
LAST_STEP = 3
CLASSES = 3
SEED = 3
MASKS = 3
UNITS = 48
"""Elements of a mask. Two masks are equal by chance once in 2 ** 48 times, and each is one exact number."""


def ddp(case: Case) -> None:
    """The guide's custom loop over a model in DistributedDataParallel."""
    _train(case)


def loops(loop: Loop) -> Callable[[Case], None]:
    """A case whose loop differs from the guide's."""
    return lambda case: _train(case, loop=loop)


def layers(case: Case) -> None:
    """A masked Embedding layer and MultiHeadAttention."""
    import keras

    _train(case, make=lambda: attending(keras), data=sequences)


def metrics_of_classes(case: Case) -> None:
    """Top-k accuracy and F1 of Keras, whose counts are added up over the ranks."""
    ranks = require(case)
    import keras

    def make() -> Any:
        return dense_model(keras, outputs=CLASSES, activation="softmax")

    def metrics() -> List[Any]:
        return [keras.metrics.TopKCategoricalAccuracy(2, name="top_2"), keras.metrics.F1Score("macro", name="f1")]

    def rank(rank_case: Case, number: int) -> Any:
        model, chosen = make(), metrics()
        rank_case.note(losses=train_loop(rank_case, _wrapped(model), data, number, ranks, metrics=chosen))
        rank_case.measure(_values("part", chosen))
        add_up(chosen)
        rank_case.measure(_values("metric", chosen))
        return model

    data = make_batches(ranks)
    places: Any = np.argmax(data.inputs[:, :CLASSES], axis=1)
    data = data._replace(targets=np.eye(CLASSES, dtype="float32")[places])
    _describe(case, ranks, data)
    single, on_one = make(), metrics()
    reference = train_reference(case, single, data, metrics=on_one)
    ended = run_ranks(case, ranks, rank)
    expect_all_trained(ended)
    compare(case, ranks, reference, len(single.trainable_variables), [facts["losses"] for facts in ended])
    case.measure({**_values("reference", on_one), **ended[0]["measures"]})


def _values(whose: str, metrics: List[Any]) -> Dict[str, float]:
    return {f"{whose} {metric.name}": float(metric.result()) for metric in metrics}


def dropout(case: Case) -> None:
    """The masks of each rank, with the same seed and with the rank added to it."""
    ranks = require(case)

    def rank(rank_case: Case, number: int) -> Any:
        rank_case.phase("train")
        for name, seed in (("same", SEED), ("rank", SEED + number)):
            rank_case.measure({f"{name} {index}": mask for index, mask in enumerate(_masks(seed))})
        return _model()

    _describe(case, ranks, make_batches(ranks))
    ended = run_ranks(case, ranks, rank)
    expect_all_trained(ended)
    equal = {
        name: sum(len({facts["measures"][f"{name} {index}"] for facts in ended}) < ranks for index in range(MASKS))
        for name in ("same", "rank")
    }
    case.measure({"masks": MASKS, "equal_masks": equal["same"], "equal_masks_of_ranks": equal["rank"]})


def _masks(seed: int) -> List[float]:
    import keras

    layer = keras.layers.Dropout(0.5, seed=seed)
    ones: Any = np.ones((1, UNITS), "float32")
    drawn = [keras.ops.convert_to_numpy(layer(ones, training=True))[0] > 0 for _ in range(MASKS)]
    return [float(mask @ 2.0 ** np.arange(UNITS)) for mask in drawn]


def batch_normalization(case: Case) -> None:
    """The same with BatchNormalization, which takes the moments of each rank's share."""
    _train(case, make=lambda: _model(normalised=True))


def uneven_tail(case: Case) -> None:
    """A final batch that does not divide: the mean of each rank counts the same."""
    _train(case, data=lambda ranks: make_batches(ranks, tail=2 * ranks - 1))


def model_built_late(case: Case) -> None:
    """A model that has no variables yet when DistributedDataParallel takes it."""
    ranks = require(case)
    import keras

    def rank(rank_case: Case, _: int) -> Any:
        rank_case.phase("build")
        return _wrapped(keras.Sequential([keras.layers.Dense(1)])).module

    _describe(case, ranks, make_batches(ranks))
    expect_all_trained(run_ranks(case, ranks, rank))


def lost_rank(case: Case) -> None:
    """The last rank is killed after its third step."""
    ranks = require(case)
    data = make_batches(ranks)
    _describe(case, ranks, data)

    def rank(rank_case: Case, number: int) -> Any:
        model = _model()
        if number == ranks - 1:
            rank_case.die_after(LAST_STEP)
        train_loop(rank_case, _wrapped(model), data, number, ranks)
        return model

    began = time.monotonic()
    patience = min(PATIENCE_S, 0.7 * case.deadline_s)
    ended = run_ranks(case, ranks, rank, patience)
    case.measure({"patience_s": patience})
    if ended[0]["outcome"] != "timed-out":
        case.measure({"others_s": time.monotonic() - began - ended[-1]["seconds"]})


def fit(case: Case) -> None:
    """``Model.fit`` in every rank, with the model in DistributedDataParallel."""
    ranks = require(case)
    import keras

    data = make_batches(ranks)
    _describe(case, ranks, data)
    share = data.global_batch // ranks

    def rank(rank_case: Case, number: int) -> Any:
        model = _model()
        _wrapped(model)
        model.compile(optimizer=keras.optimizers.SGD(LEARNING_RATE), loss="mean_squared_error")
        rank_case.phase("train")
        mine = data.inputs[number::ranks], data.targets[number::ranks]
        model.fit(*mine, batch_size=share, epochs=EPOCHS, shuffle=False, verbose=0)
        return model

    expect_all_trained(run_ranks(case, ranks, rank))
    held = left_weights(case, ranks)
    case.measure({"ranks differ": max(largest_difference(held[0], other) for other in held[1:])})


def distribution(case: Case) -> None:
    """``keras.distribution.DataParallel`` over several devices."""
    ranks = require(case)
    import keras

    names = [f"cpu:{index}" for index in range(ranks)]
    data = make_batches(ranks)
    _describe(case, ranks, data)
    case.phase("build")
    with keras.distribution.DataParallel(devices=names).scope():
        model = _model()
        model.compile(optimizer=keras.optimizers.SGD(LEARNING_RATE), loss="mean_squared_error")
        case.phase("train")
        model.fit(data.inputs, data.targets, batch_size=data.global_batch, verbose=0)
    used = {str(weight.value.device) for weight in model.weights}
    case.measure({"devices used": len(used)})


def _train(
    case: Case,
    *,
    make: Optional[Callable[[], Any]] = None,
    data: Callable[[int], Batches] = make_batches,
    loop: Optional[Loop] = None,
) -> None:
    ranks = require(case)
    make = make or _model
    batches = data(ranks)
    _describe(case, ranks, batches, loop)
    single = make()
    reference = train_reference(case, single, batches, loop)

    def rank(rank_case: Case, number: int) -> Any:
        rank_case.phase("build")
        model = make()
        rank_case.note(losses=train_loop(rank_case, _wrapped(model), batches, number, ranks, loop=loop))
        return model

    ended = run_ranks(case, ranks, rank)
    expect_all_trained(ended)
    compare(case, ranks, reference, len(single.trainable_variables), [facts["losses"] for facts in ended])


def _describe(case: Case, ranks: int, data: Batches, loop: Optional[Loop] = None) -> None:
    devices, optimizer = [f"cpu (rank {number})" for number in range(ranks)], (loop or Loop()).optimizer
    case.note(strategy="DistributedDataParallel", replicas=ranks, devices=devices, optimizer=optimizer, **data.facts())


def _model(**options: Any) -> Any:
    import keras

    return dense_model(keras, **options)


def _wrapped(model: Any) -> Any:
    import torch

    return torch.nn.parallel.DistributedDataParallel(model)


CASES = {
    "adam": loops(Loop("Adam", 0.01)),
    "nesterov": loops(Loop("SGD", 0.05, {"momentum": 0.9, "nesterov": True})),
    "clipping": loops(Loop(clip=NORM)),
    "keras-adam": loops(Loop("Adam", 0.01, of_keras=True)),
    "keras-clipping": loops(Loop(options={"global_clipnorm": NORM}, of_keras=True)),
    "accumulation": loops(Loop(together=2)),
}
