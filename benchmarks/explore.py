"""Draws jobs from the public API of the installed Keras, and examines each under all invariants: ``make explore``.

A list holds what was thought of before. Here, the symbols are those of ``keras.layers``, ``losses``,
``metrics``, ``optimizers``, ``regularizers``, ``constraints`` and ``initializers`` and the arguments of an optimizer,
each alone, and then drawn combinations of them. What a symbol needs is found by trying: the first form of inputs with
which the job trains on one device. Then ``kdoctor.preflight`` compares it on two CPU devices, in its own process
that is forked after the import. Combinations that break are made smaller as long as they break in the same way.

One line of JSON for each job is added to the file of ``--results``, with the script of the job, and a later run goes
on from there. The summary groups what breaks by the checks that fail, and says why a symbol has no verdict.
"""

import argparse
import inspect
import json
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "KDOCTOR_NO_HISTORY": "1", "CUDA_VISIBLE_DEVICES": "-1"}

import keras
import tensorflow as tf

from kdoctor import preflight
from kdoctor.model import Severity, Status

DEADLINE_S = 180
FORK = get_context("fork")
COMPARED = "job.equals-one-device"
"""A job has a verdict if this check could be judged."""

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
    "bin_boundaries": "[0.0]", "fn": "'mse'", "num_channels": "3",
    "cells": "[keras.layers.LSTMCell(4), keras.layers.LSTMCell(3)]",
}  # fmt: skip
"""What a required parameter of that name gets, as source code."""
INSTEAD = {
    "Bidirectional": "keras.layers.LSTM(4)", "CategoryEncoding": "num_tokens=10",
    "Discretization": "bin_boundaries=[0.0]",
    "EinsumDense": "'ab,bc->ac', output_shape=4", "GroupNormalization": "groups=1",
    "IntegerLookup": "vocabulary=list(range(10)), output_mode='multi_hot'",
    "MeanMetricWrapper": "fn=keras.losses.mean_squared_error",
    "MultiOptimizer": "keras.optimizers.OptimizerMap(default_optimizer=keras.optimizers.SGD(0.1))",
    "Pipeline": "[keras.layers.RandomFlip()]", "RandomPosterization": "4", "RandomTranslation": "0.2, 0.2",
    "RandomZoom": "0.2",
}  # fmt: skip
"""The arguments of symbols with which neither their defaults nor the names of their parameters do."""
OPTIMIZER_ARGUMENTS = {
    "weight_decay": "0.1", "clipnorm": "0.05", "clipvalue": "0.01", "global_clipnorm": "0.05", "use_ema": "True",
    "ema_momentum": "0.5", "ema_overwrite_frequency": "2", "loss_scale_factor": "8.0",
    "gradient_accumulation_steps": "2",
}  # fmt: skip
INPUTS = (
    "rng.normal(size=(64, 8, 8, 3)).astype('float32')",
    "rng.normal(size=(64, 6, 4)).astype('float32')",
    "rng.normal(size=(64, 8)).astype('float32')",
    "rng.normal(size=(64, 4, 4, 4, 2)).astype('float32')",
    "rng.normal(size=(64, 3, 8, 8, 3)).astype('float32')",
    "rng.integers(0, 10, (64, 6)).astype('int32')",
    "rng.normal(size=(64, 2048)).astype('float32')",
    "rng.normal(size=(64, 2, 4, 4, 4, 1)).astype('float32')",
)
CALLS = ("(x)", "([x, x])", "(x, x)")
TARGETS = (
    "keras.ops.convert_to_numpy(keras.ops.one_hot(rng.integers(0, 3, 64), 3))",
    "rng.integers(0, 3, 64)",
    "rng.integers(0, 2, (64, 3)).astype('float32')",
)
SCRIPT = """\
import keras
import numpy as np

rng = np.random.default_rng(0)
inputs = {inputs}
targets = {targets}


def build():
    keras.utils.set_random_seed(1)
    inputs_ = x = keras.Input(inputs.shape[1:], dtype=inputs.dtype.name)
{layers}
    x = keras.layers.Flatten()(x)
    x = keras.layers.Dense(3, "softmax"{dense})(x)
    model = keras.Model(inputs_, x)
    model.compile({compile})
    return model


def data():
    import tensorflow as tf
    return tf.data.Dataset.from_tensor_slices((inputs, targets)).batch(16)
"""
BASES = {
    "layers": "Layer", "losses": "Loss", "metrics": "Metric", "optimizers": "Optimizer", "regularizers": "Regularizer",
    "constraints": "Constraint", "initializers": "Initializer",
}  # fmt: skip
"""The class that the symbols of a module derive from, by its name there."""
KINDS = tuple(BASES)
Sources = tuple[str, ...]
"""The parts of a job: each is the source of a symbol of Keras, or an argument of an optimizer."""


@dataclass(frozen=True)
class Outcome:
    """What was found about one job."""

    parts: Sources
    verdict: str
    """``clean``, ``breaks`` or ``none``."""
    reason: str
    """The checks that fail, or why there is no verdict."""
    script: str
    smallest: Sources = ()
    """The parts with which it still breaks in the same way, if not all are needed."""
    keras: str = keras.__version__


def symbols() -> Iterator[str]:
    """The source of each symbol, constructed with what it requires."""
    for kind in KINDS:
        module, seen = getattr(keras, kind), set()
        base = getattr(module, BASES[kind])
        for name, value in sorted(vars(module).items()):
            if not (inspect.isclass(value) and issubclass(value, base) and name == value.__name__ and name not in seen):
                continue
            if value in (base, keras.layers.InputLayer, keras.layers.Wrapper):
                continue  # to derive from, or made by keras.Input
            seen.add(name)
            source = f"keras.{kind}.{name}({INSTEAD.get(name) or _required(value)})"
            yield f"keras.layers.RNN({source})" if name.endswith(("Cell", "Cells")) else source
    for name in inspect.signature(keras.optimizers.Optimizer).parameters:
        if name in OPTIMIZER_ARGUMENTS:
            yield f"optimizer: {name}={OPTIMIZER_ARGUMENTS[name]}"


def _required(symbol: Any) -> str:
    parameters = inspect.signature(symbol).parameters.values()
    needed = [one for one in parameters if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD]
    return ", ".join(f"{one.name}={ARGUMENTS.get(one.name, 'None')}" for one in needed)


def scripts(parts: Sources) -> Iterator[str]:
    """The forms of a job of these parts, the most common one first."""
    of = {kind: [part for part in parts if part.startswith(f"keras.{kind}.")] for kind in KINDS}
    options = "".join(f", {part.partition(': ')[2]}" for part in parts if part.startswith("optimizer: "))
    optimizer = of["optimizers"][0] if of["optimizers"] else "keras.optimizers.SGD(0.1)"
    compiled = [
        f"optimizer={optimizer[:-1]}{options if not optimizer.endswith('()') else options[2:]})",
        "loss={loss}",
        f"metrics=[{', '.join(of['metrics'])}]",
    ]
    dense = "".join(f", kernel_{kind[:-1]}={part}" for kind in KINDS[4:] for part in of[kind])
    inputs = INPUTS if of["layers"] else INPUTS[2:3]
    targets = TARGETS if of["losses"] or of["metrics"] else TARGETS[:1]
    for shape in inputs:
        for target in targets:
            for call in CALLS if of["layers"] else CALLS[:1]:
                layers = "\n".join(f"    x = {part}{call}" for part in of["layers"])
                usual = "'sparse_categorical_crossentropy'" if target == TARGETS[1] else "'mse'"
                options = ", ".join(compiled).format(loss=of["losses"][0] if of["losses"] else usual)
                yield SCRIPT.format(inputs=shape, targets=target, layers=layers, dense=dense, compile=options)


def examine(parts: Sources, ignored: frozenset[str]) -> Outcome:
    """Train the job on one device in the first form that it takes, and compare it on two."""
    error, script = "", ""
    for script in scripts(parts):
        names: dict[str, Any] = {}
        try:
            exec(script, names)  # noqa: S102 - the script that this program wrote
            losses = names["build"]().fit(names["data"](), verbose=0).history["loss"]
        except Exception as problem:  # noqa: BLE001 - the next form may train
            error = error or f"{type(problem).__name__}: {str(problem).splitlines()[0] if str(problem) else ''}"
            continue
        if losses[0] == losses[0]:
            break
        error = error or "the loss is NaN on one device"
    else:
        return Outcome(parts, "none", f"does not train on one device: {error}"[:200], script)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        model = names["build"]()
    results = preflight(model, names["data"], strategy).report.results
    failed = {item.id for item in results if item.status is Status.FAIL and item.severity is not Severity.INFO}
    if broken := sorted(failed - ignored):
        return Outcome(parts, "breaks", ", ".join(broken), script)
    compared = next((item for item in results if item.id == COMPARED), None)
    if compared is None or compared.status is not Status.PASS:
        return Outcome(parts, "none", (compared and compared.reason) or f"{COMPARED} has no result", script)
    return Outcome(parts, "clean", "", script)


def _child(pipe: Connection, parts: Sources, ignored: frozenset[str]) -> None:
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    os.dup2(null, 2)
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    try:
        outcome = examine(parts, ignored)
    except Exception as error:  # noqa: BLE001 - it is this job's result
        outcome = Outcome(parts, "none", f"preflight raised {type(error).__name__}: {error}"[:200], "")
    pipe.send(outcome)


def run(jobs: Iterator[Sources], note: Callable[[Outcome], None], ignored: frozenset[str], processes: int) -> None:
    """Examine jobs side by side, each in its own process with a deadline."""
    running: dict[Connection, tuple[Any, Sources, float]] = {}
    waiting: Sources | None = next(jobs, None)
    while waiting is not None or running:
        while waiting is not None and len(running) < processes:
            receiver, sender = FORK.Pipe(duplex=False)
            process = FORK.Process(target=_child, args=(sender, waiting, ignored))
            process.start()
            sender.close()
            running[receiver] = (process, waiting, time.monotonic() + DEADLINE_S)
            waiting = next(jobs, None)
        ready = wait(list(running), timeout=1)
        for receiver, (process, parts, deadline) in list(running.items()):
            if receiver not in ready and time.monotonic() < deadline:
                continue
            outcome = Outcome(parts, "none", f"no result within {DEADLINE_S} s", "")
            if receiver in ready:
                outcome = Outcome(parts, "none", "its process died", "")
                with suppress(EOFError):
                    outcome = receiver.recv()
            process.kill()
            process.join()
            del running[receiver]
            note(outcome)


def drawn(seed: int, number: int) -> Iterator[Sources]:
    """Combinations of two to four symbols, at most one of each kind but layers and metrics."""
    known, chance = list(symbols()), random.Random(seed)  # noqa: S311 - not for secrets
    for _ in range(number):
        parts, kinds = [], set()
        for part in chance.sample(known, 12):
            kind = part.split(".")[1] if part.startswith("keras.") else part
            if kind not in kinds or kind in ("layers", "metrics"):
                parts.append(part)
                kinds.add(kind)
        yield tuple(sorted(parts[: chance.randint(2, 4)]))


def smaller(outcome: Outcome, ignored: frozenset[str]) -> Outcome:
    """The combination without the parts that it breaks without."""
    for part in outcome.parts:
        rest = tuple(other for other in outcome.parts if other != part)
        found: list[Outcome] = []
        if rest:
            run(iter([rest]), found.append, ignored, 1)
        if found and (found[0].verdict, found[0].reason) == ("breaks", outcome.reason):
            return smaller(found[0], ignored)
    return outcome


def summary(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Coverage by kind, what breaks grouped by its checks, and what has no verdict."""
    alone = [one for one in outcomes if len(one.parts) == 1]
    for kind in (*KINDS, "optimizer: "):
        members = [one for one in alone if one.parts[0].startswith((f"keras.{kind}.", kind))]
        judged = sum(one.verdict != "none" for one in members)
        yield f"{kind.strip(': '):<13} {judged:>4} of {len(members)} with a verdict"
    judged = sum(one.verdict != "none" for one in outcomes if len(one.parts) > 1)
    yield f"{'combinations':<13} {judged:>4} with a verdict"
    for verdict, title in (("breaks", "Breaks"), ("none", "No verdict")):
        reasons = sorted({one.reason for one in outcomes if one.verdict == verdict})
        for reason in reasons:
            names = sorted(
                {
                    " + ".join(one.smallest or one.parts)
                    for one in outcomes
                    if (one.verdict, one.reason) == (verdict, reason)
                }
            )
            yield f"{title}: {reason}"
            yield from (f"    {name}" for name in names)


def main() -> None:
    """Explore, and print the summary of everything in the file of results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("explored.jsonl"))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--combinations", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=3600, help="no job begins later")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", default="", help="symbols that contain this text")
    options = parser.parse_args()
    lines = options.results.read_text(encoding="utf-8").splitlines() if options.results.exists() else []
    known = [Outcome(**{**entry, "parts": tuple(entry["parts"])}) for entry in map(json.loads, lines)]
    outcomes = [one for one in known if one.keras == keras.__version__]
    ignored: frozenset[str] = frozenset()
    """What fails in a job of none of the symbols."""
    done, end = {one.parts for one in outcomes}, time.monotonic() + options.seconds

    def note(outcome: Outcome) -> None:
        if outcome.verdict == "breaks" and len(outcome.parts) > 1:
            least = smaller(outcome, ignored)
            outcome = replace(outcome, script=least.script, smallest=least.parts)
        outcomes.append(outcome)
        with options.results.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps(asdict(outcome)) + "\n")
        print(f"{outcome.verdict:<7} {' + '.join(outcome.parts) or 'plain'}  {outcome.reason}", flush=True)

    def jobs() -> Iterator[Sources]:
        wanted = [(part,) for part in symbols() if options.only in part]
        for parts in (*wanted, *drawn(options.seed, options.combinations)):
            if parts not in done and time.monotonic() < end:
                yield parts

    if () not in done:
        run(iter([()]), note, ignored, 1)
    plain = next(one for one in outcomes if not one.parts)
    ignored = frozenset(plain.reason.split(", ") if plain.verdict == "breaks" else ())
    run(jobs(), note, ignored, options.processes)
    print("\n".join(summary(outcomes)))


if __name__ == "__main__":
    main()
