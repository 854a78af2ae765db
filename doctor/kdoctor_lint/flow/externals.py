"""What a function or a class of another module does and returns when it is called."""

import ast
import re
from collections.abc import Callable, Mapping

from kdoctor_lint.flow import values as val
from kdoctor_lint.flow.call import Call, unknown
from kdoctor_lint.flow.environment import Function
from kdoctor_lint.flow.known_functions import KNOWN_FUNCTIONS
from kdoctor_lint.flow.texts import as_number
from kdoctor_lint.flow.trace import Late, Named
from kdoctor_lint.flow.values import UNKNOWN, Value
from kdoctor_lint.names import (
    ALONE,
    BATCH_NORMALIZATION,
    GRAPH,
    HAS_SLOTS,
    NORMALIZED_APPLICATIONS,
    RANDOM,
    SEVERAL_REPLICAS,
    WEIGHTLESS,
    Kind,
    kind_of,
)

_CLIPPING = ("clipnorm", "global_clipnorm", "clipvalue")
_DEVICE_SETTINGS = re.compile(
    r"tensorflow\.config\.((experimental\.)?set_(visible_devices|memory_growth|(logical|virtual)_device_configuration)"
    r"|threading\.set_int(er|ra)_op_parallelism_threads)$"
)
"""Functions that raise an error once TensorFlow has started, which creating a strategy does."""
_LOSS = re.compile(r"keras\.losses\.[A-Z]\w*$")
_PER_EXAMPLE = re.compile(r"keras\.losses\.[a-z]\w*$|tensorflow\.nn\.\w*cross_entropy_with_logits\w*$")
_RATE = re.compile(r"(^|_)(lr|learning_rate)$")
_SCHEDULE = re.compile(r"keras\.optimizers\.schedules\.\w+$")
_OTHER_STRATEGY = re.compile(r"\.[A-Z]\w*Strategy$")  # A class of another library
_STEPS = ("decay_steps", "warmup_steps", "first_decay_steps")
_WRITERS = frozenset({"tensorflow.saved_model.save", "keras.models.save_model", "keras.saving.save_model"})


def external(call: Call, callee: val.External) -> Value:
    """A function or class of another module."""
    call.interpreter.trace.calls.append(Named(call.site, callee.name))
    if kind_of(callee.name) in {Kind.HARMLESS, Kind.UNKNOWN} and _OTHER_STRATEGY.search(callee.name):
        call.interpreter.trace.unclear = True
        return val.External("builtins.object()")  # Its replicas are others than those of TensorFlow.
    return _MAKERS.get(kind_of(callee.name), _harmless)(call, callee.name)


def _harmless(call: Call, name: str) -> Value:
    """A function of a library that enters no scope and creates no model."""
    if name in KNOWN_FUNCTIONS:
        return KNOWN_FUNCTIONS[name](call)
    before = call.interpreter.trace.calls[:-1] if name.endswith("memory_growth") else ()
    allowed = call.interpreter.guarded or any(one.name == name for one in before)  # to set it to what it is
    if _DEVICE_SETTINGS.match(name) and call.interpreter.after(SEVERAL_REPLICAS) and not allowed:
        call.interpreter.trace.late.append(Late(call.node, name.replace("tensorflow.", "tf.", 1)))
    if _LOSS.match(name) and not call.spread:
        return _loss(call)
    if _PER_EXAMPLE.match(name) and call.interpreter.in_replica:
        return val.PerExample(call.node, "loss of each example")
    if _SCHEDULE.match(name):
        call.count_steps(_STEPS)
        return call.get(0, "initial_learning_rate") or UNKNOWN
    if name.startswith("keras.random.") and "seed" not in call.keywords and not (call.spread or call.args[3:]):
        _unseeded(call, name)
    if name.startswith("keras.distribution.") and name.endswith("Parallel"):
        return val.Distribution()
    if name == "tensorflow.distribute.experimental_set_strategy" and call.args:
        strategy = call.args[0]
        call.interpreter.strategy = strategy if isinstance(strategy, val.Strategy) else None
        call.interpreter.place = val.Place.INSIDE if call.interpreter.strategy else val.Place.UNSURE
    elif name in _WRITERS:
        call.save(call.get(1, "export_dir", "filepath"), name)
    new = call.create(val.Foreign) if name.startswith("tensorflow_addons.optimizers.") else UNKNOWN
    return next((value for value in call.args if isinstance(value, val.Tensor | val.Optimizer)), new)


def _unseeded(call: Call, name: str) -> None:
    """A layer, or a step that runs on every replica, draws from the generator of the thread."""
    around = [one.receiver for one in call.interpreter.running if isinstance(one.receiver, val.Layer | val.Model)]
    homes = [one.strategy for one in around if one.place is val.Place.INSIDE]
    if name != "keras.random.SeedGenerator" and (homes or call.interpreter.in_replica):
        call.interpreter.trace.unseeded.append((call.site, name, homes[0] if homes else call.interpreter.strategy))


def _loss(call: Call) -> Value:
    reduction = call.keywords.get("reduction")
    if reduction is None:
        return val.LossObject()
    shown = reduction.value if isinstance(reduction, val.Text) else getattr(reduction, "name", "")
    each = reduction is val.NONE or shown.rpartition(".")[2].lower() == "none"
    return val.LossObject(each) if each else UNKNOWN


def _strategy(call: Call, name: str) -> Value:
    kind = name.rpartition(".")[2].removesuffix("V2")
    devices = call.get(0, "devices", "compute_devices") or UNKNOWN
    if kind == "MirroredStrategy" and _is_one_device(call, devices):
        kind = "OneDeviceStrategy"
    config = call.interpreter.trace.environment.get("TF_CONFIG", val.NONE)
    elsewhere = bool(call.args) or "cluster_resolver" in call.keywords or config is not val.NONE
    if kind.startswith("MultiWorker") and call.interpreter.alone and not elsewhere:
        kind = ALONE
    strategy = val.Strategy(frozenset({kind}), call.site, devices)
    call.interpreter.add_strategy(strategy)
    return strategy


def _is_one_device(call: Call, devices: Value) -> bool:
    """Whether a mirrored strategy certainly has a single replica."""
    if isinstance(devices, val.Many):
        given = [*call.node.args[:1], *(item.value for item in call.node.keywords if item.arg == "devices")]
        spread = any(isinstance(item, ast.Starred) for node in given for item in ast.walk(node))
        return len(devices.items) == 1 and devices.whole and not spread
    visible = call.interpreter.trace.environment.get("CUDA_VISIBLE_DEVICES")
    one = isinstance(visible, val.Text) and "," not in visible.value and visible.value.strip() not in {"", "all"}
    return isinstance(devices, val.Text) or (devices is UNKNOWN and not call.args and one)


def _model(call: Call, name: str) -> Value:
    model = call.create(val.Model)
    if NORMALIZED_APPLICATIONS.match(name):
        call.interpreter.trace.normalized_application = True
    inputs, outputs = call.get(0, "inputs"), call.get(1, "outputs")
    model.strings = next((one.node for one in val.parts(inputs) if isinstance(one, val.Tensor) and one.strings), None)
    for end in val.parts(outputs):
        if isinstance(end, val.Tensor) and end.place is val.Place.OUTSIDE and model.place is val.Place.INSIDE:
            model = val.Model(end.node, val.Place.OUTSIDE, None)
            call.interpreter.use(model)
    if name.endswith("Sequential"):
        stack = call.get(0, "layers")
        layers = stack.items if isinstance(stack, val.Many) else ()
        call.build_on(layers)
        # Without an input, the first call creates the variables.
        model.lazy = not any(isinstance(layer, val.Tensor | val.Model) for layer in layers) and not _has_input_shape(
            call
        )
        if layers and all(isinstance(layer, val.Layer) and layer.weightless for layer in layers):
            # Augmentation has no trainable weights, so it may be created anywhere.
            return val.Model(call.node, val.Place.UNSURE, None)
        call.draw(layers)
        model.plain = (
            bool(layers)
            and getattr(stack, "whole", False)
            and all(isinstance(layer, val.Layer) and not layer.normalizes for layer in layers)
        )
    call.interpreter.trace.models.append(model)
    return model


def _has_input_shape(call: Call) -> bool:
    """Whether a layer in the call is given the shape of its input, or whether this is unknown."""
    names = (item.arg for node in ast.walk(call.node) if isinstance(node, ast.Call) for item in node.keywords)
    return call.spread or any(name is None or name.startswith(("input_", "batch_input")) for name in names)


def _loaded(call: Call, _: str) -> Value:
    model = call.create(val.Model, loaded=True)
    call.interpreter.trace.models.append(model)
    return model


def _input(call: Call, _: str) -> Value:
    dtype = call.keywords.get("dtype")
    name = dtype.value if isinstance(dtype, val.Text) else getattr(dtype, "name", "")
    strings = name in {"string", "tensorflow.string"}
    # It has no variables, so it belongs to no place.
    return val.Tensor(call.site, val.Place.UNSURE, call.interpreter.strategy, strings=strings)


def _layer(call: Call, name: str) -> Value:
    if BATCH_NORMALIZATION.match(name) and "Sync" not in name and not call.spread:
        synchronized, trainable = call.keywords.get("synchronized"), call.keywords.get("trainable")
        if _is(synchronized, default=False) and _is(trainable, default=True):
            call.interpreter.trace.batch_normalized = True
        if isinstance(synchronized, val.Truth) and synchronized.value:
            call.interpreter.trace.synchronized.append(call.interpreter.strategy)
    penalized = call.keywords.get("activity_regularizer", val.NONE) is not val.NONE
    if (penalized or name.endswith(".ActivityRegularization")) and call.interpreter.place is val.Place.INSIDE:
        call.interpreter.trace.added.append((call.site, False, call.interpreter.strategy))
    rate = call.get(0, "rate", "stddev", "factor")
    shown = isinstance(rate, val.Given) and not rate.home
    zero = _is_zero(rate) or any(_is_zero(call.interpreter.defaults.get(name)) for name in getattr(rate, "names", ()))
    unclear = call.spread or zero or (rate is not None and val.is_unknown(rate) and not shown)
    drawing = RANDOM.match(name) is not None and not unclear
    random = name.rpartition(".")[2] if drawing else ""
    normalizes = BATCH_NORMALIZATION.match(name) is not None
    return call.create(val.Layer, weightless=WEIGHTLESS.match(name) is not None, random=random, normalizes=normalizes)


def _is(value: Value | None, *, default: bool) -> bool:
    return value is None or (isinstance(value, val.Truth) and value.value is default)


def _optimizer(call: Call, name: str) -> Value:
    inner = call.get(0, "inner_optimizer")
    if name.endswith("LossScaleOptimizer") and isinstance(inner, val.Optimizer):
        return inner
    rate = _rate(call.get(0, "learning_rate", "lr") or UNKNOWN)
    algorithm = name.rpartition(".")[2]
    momentum = as_number(call.get(1, "momentum") or UNKNOWN)
    moves = algorithm == "SGD" and isinstance(momentum, val.Number) and not _is_zero(momentum)
    slots = (moves or HAS_SLOTS.match(name) is not None) and not call.spread and ".legacy." not in name
    made = call.create(val.Optimizer, rate=rate, algorithm=algorithm, slots=slots)
    made.clipping = tuple(key for key in _CLIPPING if isinstance(call.keywords.get(key), val.Number))
    every = isinstance(call.keywords.get("ema_overwrite_frequency"), val.Number)
    made.overwrites = every and not _is(call.keywords.get("use_ema"), default=False)
    return made


def _rate(given: Value) -> Value:
    """The learning rate. A schedule of the script has it as an attribute."""
    options = [one for one in getattr(given, "options", [given]) if type(one) is val.Object]
    kept = (value for one in options for name, value in one.attributes.items() if _RATE.search(name))
    return next((value for value in kept if isinstance(value, val.Number)), as_number(given))


def _is_zero(value: Value | None) -> bool:
    return isinstance(value, val.Number) and value.value == 0


def _callback(call: Call, name: str) -> Value:
    short = name.rpartition(".")[2]
    call.interpreter.trace.callbacks.add(short)
    if short == "ModelCheckpoint":
        return call.save(call.get(0, "filepath"), short)
    return UNKNOWN


def _dataset(call: Call, name: str) -> Value:
    if not name.endswith(".zip"):
        in_memory = name.endswith((".from_tensor_slices", ".from_tensors", ".range"))
        return val.Dataset(source_shown=True, in_memory=in_memory, source=name)
    parts = call.args[0].items if call.args and isinstance(call.args[0], val.Many) else call.args
    if any(isinstance(part, val.Dataset) and part.batch is not None for part in parts):
        return UNKNOWN
    known = [part for part in parts if isinstance(part, val.Dataset)]
    shown = [len(known) == len(parts), *(part.source_shown for part in known)]
    return val.Dataset(source_shown=all(shown), in_memory=all(part.in_memory for part in known) and shown[0])


def _ready_dataset(call: Call, name: str) -> Value:
    is_keras = name.startswith("keras.") and not call.spread and not call.args[2:]  # the third may be the size
    batch = as_number(
        call.keywords.get("batch_size", val.Number(128 if "timeseries" in name else 32) if is_keras else UNKNOWN)
    )
    made = val.Dataset(source_shown=False, batch=batch, node=call.site, prefetched=True)
    made.truncated = True  # The last batch cannot be dropped there, so the fix of the rule about it does not apply
    made.shuffled = name.endswith("_from_directory") and _is(call.keywords.get("shuffle"), default=True)
    return made


def _first_argument(call: Call, name: str) -> Value:
    given = call.first
    if name == GRAPH and isinstance(given, Function):
        call.interpreter.graphs.add(id(given.node))
    return given


def _unknown(call: Call, name: str) -> Value:
    if name.startswith("transformers."):
        return val.External("builtins.object()")  # Its models are not of Keras 3.
    return unknown(call, name)


_MAKERS: Mapping[Kind, Callable[[Call, str], Value]] = {
    Kind.STRATEGY: _strategy,
    Kind.MODEL: _model,
    Kind.LOADED: _loaded,
    Kind.INPUT: _input,
    Kind.LAYER: _layer,
    Kind.OPTIMIZER: _optimizer,
    Kind.METRIC: lambda call, _: call.create(val.Metric),
    Kind.CALLBACK: _callback,
    Kind.DATASET: _dataset,
    Kind.READY_DATASET: _ready_dataset,
    Kind.TRANSPARENT: _first_argument,
    Kind.UNKNOWN: _unknown,
}
