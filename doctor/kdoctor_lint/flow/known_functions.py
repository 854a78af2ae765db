"""What the small functions return with which a script computes sizes and paths."""

import ast
import math
import re
from collections.abc import Callable
from dataclasses import replace

from kdoctor_lint.flow import values as val
from kdoctor_lint.flow.call import Call
from kdoctor_lint.flow.texts import as_number, as_text, given, text_of
from kdoctor_lint.flow.values import UNKNOWN, Value
from kdoctor_lint.names import DEFAULT, canonical

_PROCESSES = re.compile(r"SLURM_(NTASKS|NPROCS|NNODES|JOB_NUM_NODES)|WORLD_SIZE|OMPI_COMM_WORLD_SIZE")
"""Environment variables that hold the number of workers."""
_JOBS = frozenset({"worker", "chief"})  # Jobs of a cluster whose tasks train


def _range(call: Call) -> Value:
    count = call.args[0] if len(call.args) == 1 else UNKNOWN
    return val.Counted(count) if isinstance(count, val.Number) else UNKNOWN


def _mean(call: Call) -> Value:
    """A mean over all axes. With an axis it may be one over features."""
    if call.args and call.args[0] is val.SCALED:
        return call.args[0]
    return val.Averaged(call.node) if len(call.args) == 1 and not call.keywords and not call.spread else UNKNOWN


def _overlap_loss(call: Call) -> Value:
    """Dice or Tversky, which return one number unless they have an axis."""
    whole = call.get(2, "axis") in {None, val.NONE} and not call.spread
    return val.ScalarLoss(ast.unparse(call.node.func)) if whole else UNKNOWN


def _average(call: Call) -> Value:
    size, interpreter = call.get(2, "global_batch_size"), call.interpreter
    if interpreter.in_replica and isinstance(size, val.Number) and not size.scaled:
        interpreter.trace.averaged.append((val.Averaged(call.site, size=size), interpreter.strategy))
    return val.SCALED


def _sum(call: Call) -> Value:
    """A sum. That of ``model.losses`` is the same on every replica."""
    given = call.first
    if isinstance(given, val.Method) and given.name == "losses" and isinstance(given.receiver, val.Model):
        return val.Averaged(call.node, "regularization losses")
    tensors = "sum" in ast.unparse(call.node.func) and len(call.args) == 1 and not call.keywords
    return val.TOTAL if tensors else UNKNOWN


def _len(call: Call) -> Value:
    value = call.first
    parts = ast.walk(call.node.args[0]) if call.node.args else ()
    if any(isinstance(part, ast.Constant) and part.value in _JOBS for part in parts):
        return val.Number(None, counts=val.WORKERS)
    if isinstance(value, val.Many) and value.whole:
        return val.Number(len(value.items))
    return val.Number(None, counts=val.DEVICES) if value is val.LOCAL_DEVICES else UNKNOWN


def _same(call: Call) -> Value:
    value = call.first
    texts = [node.value for node in ast.walk(call.node) if isinstance(node, ast.Constant)]
    if any(isinstance(text, str) and _PROCESSES.fullmatch(text) for text in texts):
        return val.Number(None, counts=val.WORKERS)
    if isinstance(value, val.Number) and value.value is not None and ast.unparse(call.node.func) == "str":
        return as_text(value)
    return value if isinstance(value, _KEPT) else UNKNOWN


def _dataset(call: Call) -> Value:
    value = call.first
    return value if isinstance(value, val.Dataset | val.Batches) or value is val.DISTRIBUTED else UNKNOWN


def _batching(call: Call) -> Value:
    """What ``apply`` of a dataset gets."""
    maps = "map_and_batch" in ast.unparse(call.node.func)
    drops = call.get(1 + 2 * maps, "drop_remainder") is not None
    size = as_number(call.get(int(maps), "batch_size") or UNKNOWN)
    return val.Dataset(source_shown=False, batch=size, node=call.site, drops=drops)


def _iterator(call: Call) -> Value:
    value = _dataset(call)
    made_by = getattr(call.first.node, "func", None) if isinstance(call.first, val.Foreign) else None
    if isinstance(value, val.Dataset) or getattr(made_by, "attr", "").startswith("flow"):  # of an ImageDataGenerator
        return val.Batches(loop=None if getattr(value, "shuffled", False) else call.interpreter.loop)
    return val.Batches(whole=False, loop=call.interpreter.loop) if value is val.DISTRIBUTED else value


def _next(call: Call) -> Value:
    batches = call.first
    if not isinstance(batches, val.Batches):
        return UNKNOWN
    return val.Batch(call.site, batches.whole, batches.loop is not None and batches.loop is call.interpreter.loop)


def _zip(call: Call) -> Value:
    paired = (value for value in call.args if isinstance(value, val.Gradients | val.Batches))
    return next(paired, UNKNOWN)


def _clipped(call: Call) -> Value:
    """``tf.clip_by_norm`` and its relatives. ``clip_by_global_norm`` returns the norm, too."""
    gradients = call.first
    if not isinstance(gradients, val.Gradients):
        return UNKNOWN
    clipped = replace(gradients, clipped=call.node)
    called = ast.unparse(call.node.func)
    return val.Many([clipped, UNKNOWN]) if called.endswith("global_norm") else clipped


def _optimizer_named(call: Call) -> Value:
    name = call.first
    slots = isinstance(name, val.Text) and name.value.lower() != "sgd"
    return call.create(val.Optimizer, slots=slots) if isinstance(name, val.Text | val.Table | val.Given) else UNKNOWN


def _variable(call: Call) -> Value:
    name = call.first
    return given(name.value) if isinstance(name, val.Text) else UNKNOWN


def _unset(call: Call) -> Value:
    """``os.environ.pop``. What was set before was for other processes."""
    name, trace = call.first, call.interpreter.trace
    if isinstance(name, val.Text):
        trace.late = [late for late in trace.late if late.what != name.value]
        trace.environment |= {name.value: val.NONE} if name.value in trace.environment else {}
    return UNKNOWN


def _named(call: Call) -> Value:
    """``getattr(module, name)``."""
    owner, name = call.first, call.get(1, "name")
    if not isinstance(owner, val.External):
        return UNKNOWN
    any_one = "Optimizer" if owner.name == "keras.optimizers" else ""
    short = name.value if isinstance(name, val.Text) else any_one
    return val.External(canonical(f"{owner.name}.{short}")) if short else UNKNOWN


def _option(call: Call) -> Value:
    """``flags.DEFINE_string`` of absl."""
    name, default = call.get(0, "name"), call.get(1, "default")
    if isinstance(name, val.Text) and isinstance(default, val.Text | val.Number | val.Truth):
        call.interpreter.defaults[name.value] = default
    return UNKNOWN


def _current_strategy(call: Call) -> Value:
    """``tf.distribute.get_strategy``. Outside every scope it is the default, which has one replica."""
    interpreter = call.interpreter
    if interpreter.place is val.Place.OUTSIDE:
        return val.Strategy(DEFAULT, call.site)
    return interpreter.strategy or UNKNOWN


def _mesh(call: Call) -> Value:
    """``keras.distribution.DeviceMesh`` of all devices."""
    shape, devices = call.get(0, "shape"), call.get(2, "devices")
    sizes = [size for size in shape.items if isinstance(size, val.Number)] if isinstance(shape, val.Many) else []
    values = [size.value for size in sizes if size.value is not None]
    whole = isinstance(shape, val.Many) and shape.whole and len(values) == len(shape.items)
    if whole and devices in {None, val.NONE, val.ALL_DEVICES}:
        names = frozenset[str]().union(*(size.names for size in sizes))
        call.interpreter.trace.meshes.append((call.site, val.Number(math.prod(values), names)))
    return UNKNOWN


def _kept_sum(call: Call) -> Value:
    """What conversions and limits make of a sum or a count of one replica."""
    sums = [value for value in call.args if value is val.TOTAL]
    number = as_number(_same(call))
    counts = ast.unparse(call.node.func) in {"int", "float"}
    return sums[0] if sums else val.Number(None) if number is UNKNOWN and counts else number


_KEPT = (val.Number, val.Text, val.Given, val.Many, val.Counted, val.Averaged, val.Gradients)
"""Values that conversions keep."""


def _in_replica(call: Call, value: Value) -> Value:
    """What it is in a replica, or in a function that may be called in one, such as a loss."""
    return value if call.interpreter.in_replica or call.interpreter.place is val.Place.UNSURE else UNKNOWN


_CHECKPOINT, _CONFIG = "tensorflow.train.Checkpoint", "tensorflow.config"
_FUNCTIONS: tuple[tuple[Callable[[Call], Value], str], ...] = (
    (_mean, "tensorflow.reduce_mean tensorflow.math.reduce_mean keras.ops.mean keras.backend.mean"),
    (_sum, "tensorflow.reduce_sum tensorflow.math.reduce_sum tensorflow.add_n tensorflow.math.add_n keras.ops.sum"),
    (_sum, "keras.backend.sum builtins.sum"),
    (_average, "tensorflow.nn.compute_average_loss"),
    (_kept_sum, "tensorflow.cast tensorflow.maximum tensorflow.math.maximum tensorflow.stop_gradient keras.ops.cast"),
    (_kept_sum, "keras.ops.maximum keras.backend.cast keras.backend.maximum builtins.int builtins.float"),
    (lambda call: _in_replica(call, val.TOTAL), "tensorflow.size tensorflow.math.count_nonzero keras.ops.size"),
    (lambda call: _in_replica(call, val.SHAPE), "tensorflow.shape keras.ops.shape"),
    (_overlap_loss, "keras.losses.Dice keras.losses.Tversky"),
    (_clipped, "tensorflow.clip_by_norm tensorflow.clip_by_value tensorflow.clip_by_global_norm"),
    (_optimizer_named, "keras.optimizers.get"),
    (lambda call: val.Partial(call.first, call.args[1:], call.keywords, call.spread), "functools.partial"),
    (lambda call: call.interpreter.set_distribution(call.site), "keras.distribution.set_distribution"),
    (_mesh, "keras.distribution.DeviceMesh"),
    (_current_strategy, "tensorflow.distribute.get_strategy"),
    (lambda call: UNKNOWN if call.interpreter.in_graph else val.Truth(True), "tensorflow.executing_eagerly"),  # noqa: FBT003
    (_named, "builtins.getattr"),
    (lambda call: val.Scope(val.Strategy(DEFAULT, call.site)), "contextlib.nullcontext"),
    (_dataset, "builtins.enumerate tqdm.tqdm tqdm.auto.tqdm"),
    (_iterator, "builtins.iter"),
    (_batching, "tensorflow.data.experimental.dense_to_ragged_batch tensorflow.data.experimental.map_and_batch"),
    (_next, "builtins.next"),
    (_zip, "builtins.zip"),
    (_range, "builtins.range"),
    (_len, "builtins.len"),
    (lambda call: UNKNOWN if call.args or call.spread else val.Table(dict(call.keywords)), "builtins.dict"),
    (_same, "builtins.str builtins.list builtins.tuple builtins.round builtins.max math.ceil math.floor numpy.ceil"),
    (_same, "tensorflow.sqrt tensorflow.math.sqrt keras.ops.sqrt keras.backend.sqrt numpy.floor"),
    (lambda call: text_of(call.args, "/") if call.args and not call.spread else UNKNOWN, "os.path.join pathlib.Path"),
    (_variable, "os.environ.get os.getenv"),
    (_unset, "os.environ.pop"),
    (_option, " ".join(f"absl.flags.DEFINE_{kind}" for kind in ("string", "integer", "float", "bool", "boolean"))),
    (lambda call: call.first, "builtins.vars json.dumps"),
    (lambda _: val.Flags(), "yaml.safe_load yaml.load json.load tomllib.load"),
    (lambda _: val.ALL_DEVICES, "keras.distribution.list_devices jax.devices"),
    (lambda _: val.LOCAL_DEVICES, f"{_CONFIG}.list_physical_devices {_CONFIG}.experimental.list_physical_devices"),
    (lambda _: val.LOCAL_DEVICES, f"{_CONFIG}.list_logical_devices {_CONFIG}.experimental.list_logical_devices"),
    (lambda _: val.Given(end="/checkpoint"), "tensorflow.train.latest_checkpoint"),
    (lambda _: val.Object(), "tensorflow.data.Options"),
    (lambda call: val.Checkpoint(f"{_CHECKPOINT}()", call.keywords), _CHECKPOINT),
    (lambda call: call.save(call.get(0, "file_prefix"), "Checkpoint.save"), f"{_CHECKPOINT}().save"),
    (lambda call: call.save(call.get(0, "file_prefix"), "Checkpoint.write"), f"{_CHECKPOINT}().write"),
    (lambda call: call.save(call.get(1, "directory"), "CheckpointManager"), "tensorflow.train.CheckpointManager"),
)
KNOWN_FUNCTIONS = {name: function for function, names in _FUNCTIONS for name in names.split()}
"""What a call of them returns, by their full names."""
