"""What the small functions return with which a script computes sizes and paths."""

import ast
import math
import re
from collections.abc import Callable, Mapping

from kdoctor_lint.flow import values as val
from kdoctor_lint.flow.call import Call
from kdoctor_lint.flow.texts import given, text_of
from kdoctor_lint.flow.values import UNKNOWN, Value
from kdoctor_lint.names import DEFAULT

_PROCESSES = re.compile(r"SLURM_(NTASKS|NPROCS|NNODES|JOB_NUM_NODES)|WORLD_SIZE|OMPI_COMM_WORLD_SIZE")
"""Environment variables that hold the number of workers."""


def _range(call: Call) -> Value:
    count = call.args[0] if len(call.args) == 1 else UNKNOWN
    return val.Counted(count) if isinstance(count, val.Number) else UNKNOWN


def _mean(call: Call) -> Value:
    """A mean over all axes. With an axis it may be one over features."""
    if call.args and isinstance(call.args[0], val.Scaled):
        return call.args[0]
    return val.Averaged(call.node) if len(call.args) == 1 and not call.keywords and not call.spread else UNKNOWN


def _overlap_loss(call: Call) -> Value:
    """Dice or Tversky, which return one number unless they have an axis."""
    whole = call.get(2, "axis") in {None, val.NONE} and not call.spread
    return val.ScalarLoss(ast.unparse(call.node.func)) if whole else UNKNOWN


def _average(call: Call) -> Value:
    size, interpreter = call.get(2, "global_batch_size"), call.interpreter
    if interpreter.in_replica and isinstance(size, val.Number) and size.value is not None and not size.scaled:
        interpreter.trace.divided_by.append((call.site, size, interpreter.strategy))
    return UNKNOWN


def _regularization(call: Call) -> Value:
    """The sum of ``model.losses``, which is the same on every replica."""
    given = call.args[0] if call.args else UNKNOWN
    whole = isinstance(given, val.Method) and given.name == "losses" and isinstance(given.receiver, val.Model)
    return val.Averaged(call.node, "regularization losses") if whole else UNKNOWN


def _len(call: Call) -> Value:
    value = call.args[0] if call.args else UNKNOWN
    if isinstance(value, val.Many):
        return val.Number(len(value.items))
    of = call.node.args[0] if call.node.args else None
    workers = isinstance(of, ast.Subscript) and isinstance(of.slice, ast.Constant) and of.slice.value == "worker"
    return val.Number(None, scaled=True) if workers else UNKNOWN


def _same(call: Call) -> Value:
    value = call.args[0] if call.args else UNKNOWN
    texts = [node.value for node in ast.walk(call.node) if isinstance(node, ast.Constant)]
    if any(isinstance(text, str) and _PROCESSES.fullmatch(text) for text in texts):
        return val.Number(None, scaled=True)
    return (
        value
        if isinstance(value, val.Number | val.Text | val.Given | val.Many | val.Counted | val.Averaged)
        else UNKNOWN
    )


def _dataset(call: Call) -> Value:
    value = call.args[0] if call.args else UNKNOWN
    return value if isinstance(value, val.Dataset) else UNKNOWN


def _joined(call: Call) -> Value:
    return text_of(call.args, "/") if call.args and not call.spread else UNKNOWN


def _variable(call: Call) -> Value:
    name = call.args[0] if call.args else UNKNOWN
    return given(name.value) if isinstance(name, val.Text) else UNKNOWN


def _unset(call: Call) -> Value:
    """``os.environ.pop``. What was set before was for other processes."""
    name, trace = call.args[0] if call.args else UNKNOWN, call.interpreter.trace
    if isinstance(name, val.Text):
        trace.late = [late for late in trace.late if late.what != name.value]
    return UNKNOWN


def _option(call: Call) -> Value:
    """``flags.DEFINE_string`` of absl."""
    name, default = call.get(0, "name"), call.get(1, "default")
    if isinstance(name, val.Text) and isinstance(default, val.Text):
        call.interpreter.defaults[name.value] = default.value
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
    if isinstance(shape, val.Many) and len(sizes) == len(shape.items) and devices in {None, val.NONE, val.ALL_DEVICES}:
        values = [size.value for size in sizes if size.value is not None]
        names = frozenset[str]().union(*(size.names for size in sizes))
        if len(values) == len(sizes):
            call.interpreter.trace.meshes.append((call.site, val.Number(math.prod(values), names)))
    return UNKNOWN


KNOWN_FUNCTIONS: Mapping[str, Callable[[Call], Value]] = {
    "tensorflow.reduce_mean": _mean,
    "tensorflow.math.reduce_mean": _mean,
    "keras.ops.mean": _mean,
    "keras.backend.mean": _mean,
    "tensorflow.reduce_sum": _regularization,
    "tensorflow.math.reduce_sum": _regularization,
    "tensorflow.add_n": _regularization,
    "tensorflow.math.add_n": _regularization,
    "keras.ops.sum": _regularization,
    "builtins.sum": _regularization,
    "keras.losses.Dice": _overlap_loss,
    "keras.losses.Tversky": _overlap_loss,
    "tensorflow.nn.compute_average_loss": _average,
    "builtins.zip": lambda call: next((value for value in call.args if isinstance(value, val.Averaged)), UNKNOWN),
    "builtins.enumerate": _dataset,
    "tqdm.tqdm": _dataset,
    "tqdm.auto.tqdm": _dataset,
    "builtins.range": _range,
    "builtins.len": _len,
    "builtins.int": _same,
    "builtins.float": _same,
    "builtins.str": _same,
    "builtins.list": _same,
    "builtins.tuple": _same,
    "tensorflow.distribute.get_strategy": _current_strategy,
    "keras.distribution.DeviceMesh": _mesh,
    "keras.distribution.list_devices": lambda _: val.ALL_DEVICES,
    "jax.devices": lambda _: val.ALL_DEVICES,
    "tensorflow.train.latest_checkpoint": lambda _: val.Given(end="/checkpoint"),
    "absl.flags.DEFINE_string": _option,
    "os.path.join": _joined,
    "os.environ.get": _variable,
    "os.environ.pop": _unset,
    "os.getenv": _variable,
    "tensorflow.data.Options": lambda _: val.Object(),
    "pathlib.Path": _joined,
}
