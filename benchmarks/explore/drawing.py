"""What jobs are drawn from: the public API of the installed Keras, and the source that each symbol of it gets."""

import importlib
import inspect
import os
import random
from collections.abc import Iterator
from typing import Any, TypeAlias

from benchmarks.explore.own import OWN

PACKAGE = os.environ.get("EXPLORE_PACKAGE", "keras")
"""``keras``, or ``tf_keras``. The jobs call it ``keras``."""
keras: Any = importlib.import_module(PACKAGE)

Sources: TypeAlias = tuple[str, ...]
"""The parts of a job. Each is the source of a symbol of Keras, or a use of it such as ``fit: batch_size=8``."""

BASES = {
    "layers": "Layer", "losses": "Loss", "metrics": "Metric", "optimizers": "Optimizer", "regularizers": "Regularizer",
    "constraints": "Constraint", "initializers": "Initializer", "callbacks": "Callback",
}  # fmt: skip
"""The class that the symbols of a module derive from, by its name there."""
KINDS = tuple(BASES)
USES = ("optimizer", "own", "policy", "compile", "fit", "evaluate", "predict", "data", "save")
"""Arguments of an optimizer, classes of the job's own, policies of dtypes, arguments of the methods of a model, the
forms of its data, and the ways to save it."""
ABOUT_CALLS = (*USES[USES.index("compile") :], "callbacks")
POLICIES = ("mixed_bfloat16", "mixed_float16", "bfloat16", "float64")
OPTIONAL = {
    "dropout": "0.3", "recurrent_dropout": "0.3", "synchronized": "True", "mask_zero": "True",
}  # fmt: skip
"""Arguments with which a symbol is drawn once more."""
REDUCTIONS = ("sum", "mean", "mean_with_sample_weight", "none")

ARGUMENTS = {
    "units": "4", "filters": "2", "kernel_size": "2", "rate": "0.3", "input_dim": "10", "output_dim": "4",
    "num_heads": "2", "key_dim": "2", "pool_size": "2", "target_shape": "(-1,)", "dims": "(1, 2)", "n": "2",
    "axes": "1", "stddev": "0.1", "factor": "0.2", "height": "8", "width": "8", "layer": "keras.layers.Dense(4)",
    "cell": "keras.layers.LSTMCell(4)", "output_size": "2", "function": "lambda x: x",
    "activation": "'relu'", "num_bins": "8",
    "num_tokens": "10", "seed": "1", "value": "0.1", "head_dim": "2", "num_query_heads": "2",
    "num_key_value_heads": "1", "scale": "2.0", "num_classes": "3", "recall": "0.5", "precision": "0.5",
    "specificity": "0.5", "sensitivity": "0.5", "inner_optimizer": "keras.optimizers.SGD(0.1)",
    "target_class_ids": "[0]", "sequence_length": "6", "intermediate_dim": "4", "name": "'named'",
    "bin_boundaries": "[0.0]", "fn": "'mse'", "num_channels": "3", "schedule": "lambda epoch: 0.1 / (1 + epoch)",
    "filepath": "f'{folder}/saved.keras'", "backup_dir": "f'{folder}/backup'", "filename": "f'{folder}/log.csv'",
    "cells": "[keras.layers.LSTMCell(4), keras.layers.LSTMCell(3)]", "directory": "f'{folder}/orbax'",
}  # fmt: skip
"""What a required parameter of that name gets, as source code."""
INSTEAD = {
    "Bidirectional": "keras.layers.LSTM(4)", "CategoryEncoding": "num_tokens=10",
    "Discretization": "bin_boundaries=[0.0]", "EarlyStopping": "'loss', patience=0, min_delta=9",
    "EinsumDense": "'ab,bc->ac', output_shape=4", "GroupNormalization": "groups=1",
    "IntegerLookup": "vocabulary=list(range(10)), output_mode='multi_hot'",
    "LambdaCallback": "on_epoch_end=lambda epoch, logs: None",
    "MeanMetricWrapper": "fn=keras.losses.mean_squared_error",
    "MultiOptimizer": "keras.optimizers.OptimizerMap(default_optimizer=keras.optimizers.SGD(0.1))",
    "Pipeline": "[keras.layers.RandomFlip()]", "RandomPosterization": "4", "RandomTranslation": "0.2, 0.2",
    "RandomZoom": "0.2", "Solarization": "value_range=(-2.0, 2.0)", "StringLookup": "vocabulary=['a', 'b']",
    "TextVectorization": "vocabulary=['a', 'b'], output_mode='multi_hot'", "TensorBoard": "f'{folder}/board'",
    "ReduceLROnPlateau": "'loss', patience=0, min_delta=9",
}  # fmt: skip
"""The arguments of symbols with which neither their defaults nor the names of their parameters do."""
OTHER_BACKENDS = ("FlaxLayer", "JaxLayer", "TorchModuleWrapper")
WEIGHTS = "np.linspace(0.5, 1.5, 64)"
METHODS = {
    "optimizer": {
        "momentum": "0.9", "nesterov": "True, momentum=0.9", "weight_decay": "0.1", "clipnorm": "0.05",
        "clipvalue": "0.01", "global_clipnorm": "0.05", "use_ema": "True",
        "ema_momentum": "0.5, use_ema=True", "ema_overwrite_frequency": "2, use_ema=True", "loss_scale_factor": "8.0",
        "gradient_accumulation_steps": "2",
    },
    "compile": {
        "loss_weights": "[0.5]", "weighted_metrics": "['accuracy']", "run_eagerly": "True", "steps_per_execution": "2",
        "jit_compile": "True", "auto_scale_loss": "False", "pss_evaluation_shards": "2",
    },
    "fit": {
        "batch_size": "8", "epochs": "3", "verbose": "2", "validation_split": "0.25",
        "validation_data": "(inputs, targets)", "shuffle": "True", "class_weight": "{0: 1.0, 1: 2.0, 2: 3.0}",
        "sample_weight": WEIGHTS, "initial_epoch": "1", "steps_per_epoch": "2",
        "validation_steps": "1, validation_data=(inputs, targets)",
        "validation_batch_size": "8, validation_data=(inputs, targets)",
        "validation_freq": "2, validation_data=(inputs, targets)", "workers": "1", "max_queue_size": "4",
        "use_multiprocessing": "False",
    },
    "evaluate": {"batch_size": "8", "verbose": "2", "sample_weight": WEIGHTS, "steps": "2", "callbacks": "[]",
                 "workers": "1", "max_queue_size": "4", "use_multiprocessing": "False"},
    "predict": {"batch_size": "8", "verbose": "2", "steps": "2", "callbacks": "[]",
                "workers": "1", "max_queue_size": "4", "use_multiprocessing": "False"},
}  # fmt: skip
"""A value for each argument of a method, as source code."""
GIVEN = ("self", "x", "y", "optimizer", "loss", "metrics", "callbacks", "return_dict", "kwargs",
         "name", "learning_rate")  # fmt: skip
"""Arguments that every job has, or that are drawn as symbols."""
FORMS = {
    "arrays": "dict(x=inputs, y=targets, batch_size=16)",
    "uneven arrays": "dict(x=inputs[:57], y=targets[:57], batch_size=16)",
    "tensors": "dict(x=tf.constant(inputs), y=tf.constant(targets), batch_size=16)",
    "data frame": "dict(x=__import__('pandas').DataFrame(inputs), y=targets, batch_size=16)",
    "dataset": "dict(x=tf.data.Dataset.from_tensor_slices((inputs, targets)).batch(16))",
    "uneven dataset": "dict(x=tf.data.Dataset.from_tensor_slices((inputs[:57], targets[:57])).batch(16))",
    "odd batches": "dict(x=tf.data.Dataset.from_tensor_slices((inputs, targets)).batch(15))",
    "weighted dataset": f"dict(x=tf.data.Dataset.from_tensor_slices((inputs, targets, {WEIGHTS})).batch(16))",
    "filtered dataset": "dict(x=tf.data.Dataset.from_tensor_slices((inputs, targets))"
    ".filter(lambda x, y: x[0] > -0.5).batch(16))",
    "ragged batches": "dict(x=tf.data.Dataset.from_tensor_slices((inputs, targets))"
    ".ragged_batch(16).map(lambda x, y: (x, y)))",
    "infinite dataset": "dict(x=tf.data.Dataset.from_tensor_slices((inputs, targets)).repeat().batch(16), "
    "steps_per_epoch=4)",
    "dataset from a generator": "dict(x=tf.data.Dataset.from_generator(lambda: zip(inputs, targets), output_signature="
    "(tf.TensorSpec((8,)), tf.TensorSpec((3,)))).batch(16))",
    "finite generator": "dict(x=((inputs[i:i + 16], targets[i:i + 16]) for _ in range(2) for i in range(0, 64, 16)), "
    "steps_per_epoch=4)",
    "infinite generator": "dict(x=((inputs[i:i + 16], targets[i:i + 16]) for _ in range(99) for i in range(0, 64, 16)),"
    " steps_per_epoch=4)",
    "sequence": "dict(x=type('Batches', (keras.utils.PyDataset if hasattr(keras.utils, 'PyDataset') else "
    "keras.utils.Sequence,), {'__module__': 'script', '__len__': lambda self: 4, '__getitem__': lambda self, i: "
    "(inputs[16 * i:16 * i + 16], targets[16 * i:16 * i + 16])})())",
    "distributed dataset": "dict(x=tf.distribute.get_strategy().experimental_distribute_dataset("
    "tf.data.Dataset.from_tensor_slices((inputs, targets)).batch(16)))",
    "data loader of torch": "dict(x=__import__('torch.utils.data').utils.data.DataLoader("
    "list(zip(inputs, targets)), batch_size=16))",
    "dataset of grain": "dict(x=__import__('grain').MapDataset.source(list(zip(inputs, targets))).batch(16))",
}
"""The forms of data that ``fit`` documents, as arguments of it."""
WAYS = {
    "keras": "model.save(f'{folder}/m.keras'); model = keras.models.load_model(f'{folder}/m.keras')",
    "h5": "model.save(f'{folder}/m.h5'); model = keras.models.load_model(f'{folder}/m.h5', compile=False)",
    "weights": "model.save_weights(f'{folder}/m.weights.h5'); model = build(); "
    "model.load_weights(f'{folder}/m.weights.h5')",
    "get_weights": "kept = model.get_weights(); model = build(); model.set_weights(kept)",
    "json": "kept = model.get_weights(); model = keras.models.model_from_json(model.to_json()); "
    "model.set_weights(kept)",
    "checkpoint": "path = tf.train.Checkpoint(model=model).write(f'{folder}/c'); model = build(); "
    "tf.train.Checkpoint(model=model).read(path)",
    "export": "model.export(f'{folder}/m'); "
    "served = tf.saved_model.load(f'{folder}/m'); return served.serve(tf.constant(inputs)).numpy()",
    "saved_model": "tf.saved_model.save(model, f'{folder}/m'); served = tf.saved_model.load(f'{folder}/m'); "
    "return list(served.signatures['serving_default'](tf.constant(inputs)).values())[0].numpy()",
    "pickle": "import pickle; model = pickle.loads(pickle.dumps(model))",
    "clone": "kept = model; model = keras.models.clone_model(model); model.set_weights(kept.get_weights())",
}
"""The ways to save and load: source that leaves the loaded model in ``model``, or returns its predictions."""


def symbols() -> Iterator[str]:
    """The source of each symbol, constructed with what it requires, and of each use."""
    for kind in KINDS:
        module, seen = getattr(keras, kind), set()
        base = getattr(module, BASES[kind])
        for name, value in sorted(vars(module).items()):
            if not (inspect.isclass(value) and issubclass(value, base) and name == value.__name__ and name not in seen):
                continue
            if value is base or name in ("InputLayer", "Wrapper", "CallbackList", "History", *OTHER_BACKENDS):
                continue  # to derive from, or made by Keras itself
            seen.add(name)
            needed = INSTEAD.get(name) or _required(value)
            given = [f"{one}={OPTIONAL[one]}" for one in inspect.signature(value).parameters if one in OPTIONAL]
            for more in ("", *given):
                source = f"keras.{kind}.{name}({', '.join(filter(None, (needed, more)))})"
                yield f"keras.layers.RNN({source})" if name.endswith(("Cell", "Cells")) else source
    yield from (f"keras.losses.MeanSquaredError(reduction='{name}')" for name in REDUCTIONS)
    for method, values in METHODS.items():
        called = keras.optimizers.SGD if method == "optimizer" else getattr(keras.Model, method)
        for name, parameter in inspect.signature(called).parameters.items():
            if name not in GIVEN and parameter.kind is not parameter.VAR_POSITIONAL:
                yield f"{method}: {name}={values.get(name, '?')}"
    yield from (f"own: {name}" for name in OWN)
    yield from (f"policy: {name}" for name in POLICIES)
    yield from (f"data: {form}" for form in FORMS)
    yield from (f"save: {way}" for way in WAYS)


def _required(symbol: Any) -> str:
    parameters = inspect.signature(symbol).parameters.values()
    needed = [one for one in parameters if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    return ", ".join(f"{one.name}={ARGUMENTS.get(one.name, 'None')}" for one in needed)


def kind_of(part: str) -> str:
    """The module of a symbol, or the name of a use."""
    return part.split(".")[1] if part.startswith("keras.") else part.partition(":")[0]


def drawn(seed: int, number: int) -> Iterator[Sources]:
    """Combinations of two to four symbols. Metrics, callbacks and arguments may be several."""
    known, chance = list(symbols()), random.Random(seed)  # noqa: S311 - not for secrets
    for _ in range(number):
        parts, kinds = [], set()
        for part in chance.sample(known, 12):
            kind = kind_of(part)
            if kind not in kinds or kind in ("metrics", "callbacks", *METHODS):
                parts.append(part)
                kinds.add(kind)
        yield tuple(sorted(parts[: chance.randint(2, 4)]))
