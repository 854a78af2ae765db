"""The script of a job, in the forms that it could have."""

from collections.abc import Iterator

from benchmarks.explore.drawing import ABOUT_CALLS, FORMS, KINDS, PACKAGE, USES, WAYS, Sources, kind_of
from benchmarks.explore.own import OWN

INPUTS = (
    "rng.normal(size=(64, 8, 8, 3)).astype('float32')",
    "rng.normal(size=(64, 6, 4)).astype('float32')",
    "rng.normal(size=(64, 8)).astype('float32')",
    "rng.normal(size=(64, 4, 4, 4, 2)).astype('float32')",
    "rng.normal(size=(64, 3, 8, 8, 3)).astype('float32')",
    "rng.integers(0, 10, (64, 6)).astype('int32')",
    "rng.normal(size=(64, 2048)).astype('float32')",
    "rng.normal(size=(64, 2, 4, 4, 4, 1)).astype('float32')",
    "rng.normal(size=(64, 600, 1)).astype('float32')",
    "rng.integers(0, 10, (64, 1)).astype('int32')",
    "rng.choice(['a', 'b', 'c'], (64, 1)).astype(object)",
)
CALLS = ("(x)", "([x, x])", "(x, x)")
TARGETS = (
    "np.eye(3, dtype='float32')[rng.integers(0, 3, 64)]",
    "rng.integers(0, 3, 64)",
    "rng.integers(0, 2, (64, 3)).astype('float32')",
)
SCRIPT = """\
import {package} as keras
import numpy as np
import tensorflow as tf

rng = np.random.default_rng(0)
inputs = {inputs}
targets = {targets}
{own}

def build():
    keras.utils.set_random_seed(1)
{policy}    inputs_ = x = keras.Input(inputs.shape[1:], dtype=inputs.dtype.name.replace("object", "string"))
{layers}
    x = keras.layers.Flatten()(x)
    x = keras.layers.Dense(3, "softmax"{dense})(x)
    model = {model}(inputs_, x)
    model.compile({compile})
    return model


def data():
    return {data}
"""
FOLLOWED = """\

def fit(model, folder):
    return model.fit(**data() | dict(epochs=2, shuffle=False, verbose=0){fit})


def evaluate(model):
    given = data()
    steps = given.pop("steps_per_epoch", None)
    return model.evaluate(**given | dict(steps=steps, verbose=0, return_dict=True){evaluate})


def predict(model):
    return model.predict(**dict(x=inputs, batch_size=16, verbose=0){predict})


def load(model, folder):
    {save}
    return model.predict(inputs, verbose=0)
"""


def is_followed(parts: Sources) -> bool:
    """Whether the job is about how the methods of a model are called, which preflight does for itself."""
    return any(kind_of(part) in ABOUT_CALLS for part in parts)


def scripts(parts: Sources) -> Iterator[str]:
    """The forms of a job of these parts, the most common one first."""
    of = {kind: [part for part in parts if kind_of(part) == kind] for kind in (*KINDS, *USES)}
    used = {kind: [part.partition(": ")[2] for part in of[kind]] for kind in USES}
    followed = is_followed(parts)
    optimizer = of["optimizers"][0] if of["optimizers"] else "keras.optimizers.SGD(0.1)"
    own = [OWN[name] for name in used["own"]]
    for one in own:
        of.setdefault(one.kind, []).append(one.used)
    more = ", ".join(used["optimizer"])
    compiled = [
        f"optimizer={optimizer[:-1]}{', ' * bool(more and not optimizer.endswith('()'))}{more})",
        "loss={loss}",
        *([f"metrics=[{', '.join(of['metrics'])}]"] if of["metrics"] else []),
        *used["compile"],
    ]
    called = {
        kind: "".join(f" | dict({argument})" for argument in used[kind]) for kind in ("fit", "evaluate", "predict")
    }
    if of["callbacks"]:
        called["fit"] += f" | dict(callbacks=[{', '.join(of['callbacks'])}])"
    form = FORMS[used["data"][0] if used["data"] else "arrays" if followed else "dataset"]
    dense = "".join(f", kernel_{kind[:-1]}={part}" for kind in KINDS[4:7] for part in of[kind])
    for shape in INPUTS if of["layers"] else INPUTS[2:3]:
        for target in TARGETS if of["losses"] or of["metrics"] else TARGETS[:1]:
            for call in CALLS if of["layers"] else CALLS[:1]:
                usual = "'sparse_categorical_crossentropy'" if target == TARGETS[1] else "'mse'"
                script = SCRIPT.format(
                    package=PACKAGE,
                    inputs=shape,
                    targets=target,
                    own="".join(f"\n\n{one.source}\n" for one in own),
                    model=(of.get("model") or ["keras.Model"])[0],
                    policy="".join(
                        f"    keras.mixed_precision.set_global_policy('{name}')\n" for name in used["policy"]
                    ),
                    layers="\n".join(f"    x = {part}{call}" for part in of["layers"]),
                    dense=dense,
                    compile=", ".join(compiled).format(loss=of["losses"][0] if of["losses"] else usual),
                    data=form,
                )
                save = WAYS[used["save"][0] if used["save"] else "get_weights"].replace("; ", "\n    ")
                yield script + FOLLOWED.format(save=save, **called) if followed else script
