"""What a method of an object that the script does not define does, by the kind of the object."""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any

from kdoctor_lint.flow import values as val
from kdoctor_lint.flow.call import Call, from_configuration, list_method, table_method, text_method, unknown
from kdoctor_lint.flow.environment import Function
from kdoctor_lint.flow.joining import join
from kdoctor_lint.flow.texts import as_number, interpolated
from kdoctor_lint.flow.trace import Compiled, Fitted
from kdoctor_lint.flow.values import UNKNOWN, Value
from kdoctor_lint.names import BATCH, DEFAULT, EVALUATION, SOME, WORKERS, Kind, kind_of

_KEEPING = frozenset({
    "assert_cardinality", "cache", "concatenate", "enumerate", "filter", "flat_map", "ignore_errors", "interleave",
    "map", "rejection_resample", "scan", "shard", "shuffle", "snapshot", "window", "with_options",
})  # fmt: skip
_CHEAP = frozenset({"assert_cardinality", "cache", "enumerate", "shard", "shuffle", "window", "with_options"})
_ALONE = _KEEPING - {"concatenate", "flat_map", "interleave"}
"""Methods after which the elements come from the same source."""
_BATCHING = frozenset({"batch", "padded_batch", "ragged_batch"})
_TRUNCATING = frozenset({"take", "take_while", "skip"})


def pipeline(call: Call, receiver: Value, name: str) -> Value:
    """The result of ``receiver.name(...)``. An unknown receiver becomes a pipeline when it is batched."""
    before = dataset_of(receiver) or val.Dataset(source_shown=False)
    if name in _BATCHING or name == "apply":
        return _batched(call, before, name)
    if name == "as_numpy_iterator":
        return val.Batches() if before.batch is not None else UNKNOWN
    if name in _TRUNCATING:
        return replace(before, truncated=before.batch is not None)
    if name == "prefetch":
        return replace(before, prefetched=before.batch is not None)
    if name == "repeat":
        return replace(before, repeated=before.repeated or before.batch is None)
    # After unbatch, apply, rebatch and others, nothing is known.
    return _kept(call, before, name) if name in _KEEPING else UNKNOWN


def dataset_of(value: Value) -> val.Dataset | None:
    """A dataset, or what an unknown function or a class of the script, such as a Sequence, makes of a batch size."""
    size, node = (value.batch, value.node) if isinstance(value, val.Foreign) else (None, None)
    if type(value) is val.Object:
        held = [one for name, one in value.attributes.items() if BATCH.search(name) and isinstance(one, val.Number)]
        size, node = held[0] if held else None, value.site
    if size is None or node is None:
        return value if isinstance(value, val.Dataset) else None
    return val.Dataset(source_shown=False, batch=size, node=node, drops=True, prefetched=True)


def _kept(call: Call, before: val.Dataset, name: str) -> val.Dataset:
    frozen = call.site if name == "cache" and before.shuffled and not before.repeated else before.frozen
    return replace(
        before,
        in_memory=before.in_memory and name in _CHEAP,
        shuffled=before.shuffled or name in {"shuffle", "rejection_resample"},
        frozen=None if name == "shuffle" else frozen,
        sharded=before.sharded or name == "shard",
        policy=_policy(call) if name == "with_options" else before.policy,
        source=before.source if name in _ALONE else "",
    )


def _policy(call: Call) -> str:
    options = call.get(0, "options")
    policy = options.attributes.get("auto_shard_policy") if isinstance(options, val.Object) else None
    return policy.name.rpartition(".")[2] if isinstance(policy, val.External) else ""


def _batched(call: Call, before: val.Dataset, name: str) -> Value:
    if before.batch is not None:
        # Batches of batches: either one may be the batch of a training step.
        return UNKNOWN
    given = call.first
    if name == "apply":
        if not isinstance(given, val.Dataset):
            return val.Dataset(source_shown=False)
        return replace(before, batch=given.batch, node=given.node, drops=given.drops)
    drops = call.get(3 if name == "padded_batch" else 1, "drop_remainder") or val.NONE
    may_drop = call.spread or not (drops is val.NONE or (isinstance(drops, val.Truth) and not drops.value))
    return replace(before, batch=as_number(call.get(0, "batch_size") or UNKNOWN), node=call.site, drops=may_drop)


_UPDATES = frozenset({"apply_gradients", "apply", "minimize", "update_state"})
_ON_BATCH = frozenset({"predict_on_batch", "train_on_batch", "test_on_batch"})
_DISTRIBUTE = "experimental_distribute_dataset"
_SAVES = frozenset({"save", "save_weights", "export"})
_SCALAR_LOSSES = frozenset({"dice", "tversky"})  # Names of losses that return one number
_APPLIES = frozenset({"apply_gradients", "apply"})
_TRAINS = frozenset({"apply_gradients", "minimize", "train_on_batch"})
_BUILDS = _APPLIES | {"minimize", "build"}


def method(call: Call, callee: val.Method) -> Value:
    """A method of an object that the script does not define."""
    trace = call.interpreter.trace
    trace.trains |= callee.name in {"compile", "fit"}
    applies = callee.name in _TRAINS or (callee.name == "apply" and isinstance(callee.receiver, val.Optimizer))
    trace.applying |= {id(one.node) for one in call.interpreter.running if applies}
    handler = _BY_RECEIVER.get(callee.receiver.__class__) if callee.receiver is not val.NONE else None
    return UNKNOWN if handler is None else handler(call, callee.receiver, callee.name)


def update(call: Call, receiver: val.Made, name: str) -> Value:
    """An optimizer or a metric changes its variables, which must belong to the strategy in charge."""
    interpreter, trace = call.interpreter, call.interpreter.trace
    _applied(call, name)
    if name in _APPLIES and not interpreter.in_replica:
        home = _home_of_step(call, receiver)
        around = frozenset(id(one.node) for one in interpreter.running)
        trace.stepped.append((call.site, home, interpreter.place, around))
    if interpreter.in_replica and name in _UPDATES:
        interpreter.use(receiver)
    if isinstance(receiver, val.Optimizer) and name in _BUILDS and not interpreter.idle:
        if interpreter.in_replica and interpreter.in_graph and name != "build" and not receiver.built:
            trace.built_late.append((receiver, interpreter.strategy))
        receiver.built = True
    return call.first if isinstance(call.first, val.Averaged | val.Gradients) else UNKNOWN  # perhaps scaled


def _home_of_step(call: Call, optimizer: val.Made) -> val.Strategy | None:
    """The strategy in whose scope gradients must be applied. Keras 2 creates variables for them outside, too."""
    if call.interpreter.place is not val.Place.OUTSIDE:
        return call.interpreter.strategy
    creates = isinstance(optimizer, val.Optimizer) and optimizer.slots and not optimizer.built
    return optimizer.strategy if creates and not call.interpreter.trace.legacy else None


def _applied(call: Call, name: str) -> None:
    """The gradients of one replica are summed and applied."""
    interpreter, given = call.interpreter, call.first
    is_summed = name == "apply" or (name == "apply_gradients" and not call.args[1:] and not call.keywords)
    if interpreter.in_replica and is_summed and isinstance(given, val.Gradients):
        interpreter.trace.averaged += [(given.loss, interpreter.strategy)] if given.loss is not None else []
        interpreter.trace.clipped += [(given.clipped, interpreter.strategy)] if given.clipped is not None else []


def _strategy_method(call: Call, strategy: val.Strategy, name: str) -> Value:
    if name == "scope":
        return val.Scope(strategy)
    if name in {"run", "experimental_run_v2", "experimental_run"}:
        return _run(call, strategy)
    if name in {"compile", "fit"}:  # it is what another file's function made with the strategy
        return _foreign_method(call, val.Foreign(call.site, val.Place.INSIDE, strategy), name)
    data = dataset_of(call.first) or call.first
    reduced = call.args[1] if name == "reduce" and call.args[1:] else UNKNOWN
    if val.SCALED in (reduced, *getattr(reduced, "items", ())):
        how = data.value if isinstance(data, val.Text) else getattr(data, "name", "")
        call.interpreter.trace.reduced += [(call.site, strategy)] if how.lower().endswith("mean") else []
    if name == _DISTRIBUTE:
        bases = [base for one in call.interpreter.running if one.cls for base in one.cls.external_bases()]
        evaluates = EVALUATION.search(ast.unparse(call.node)) or Kind.CALLBACK in map(kind_of, bases)
        if isinstance(data, val.Dataset) and not evaluates:
            call.interpreter.trace.distributed.append((strategy, data))
        return val.DISTRIBUTED
    if isinstance(data, Function) and name.endswith("from_function"):
        if name.endswith("distribute_datasets_from_function") and _ignores_context(data):
            call.interpreter.trace.unsharded.append((call.node, strategy))
        call.interpreter.feeding = strategy
        call.interpreter.follow(data, [UNKNOWN], {}, spread=True)
        call.interpreter.feeding = None
        return val.DISTRIBUTED
    return UNKNOWN


def _ignores_context(function: Function) -> bool:
    """Whether a function that makes a dataset does not use its only parameter."""
    names = [one.arg for one in function.node.args.args]
    return len(names) == 1 and not any(isinstance(one, ast.Name) and one.id in names for one in ast.walk(function.node))


def _run(call: Call, strategy: val.Strategy) -> Value:
    function, arguments, trace = call.get(0, "fn"), call.get(1, "args"), call.interpreter.trace
    args = arguments.items if isinstance(arguments, val.Many) else ()
    functions = [one for one in getattr(function, "options", [function]) if isinstance(one, Function)]
    trace.handed |= {id(one.node) for one in functions}
    with call.interpreter.scoped(val.Place.INSIDE, strategy, in_replica=True):
        spread = not (isinstance(arguments, val.Many) and arguments.whole)
        results = [call.interpreter.follow(one, args, {}, spread=spread) for one in functions]
    returned = reduce(join, results or [UNKNOWN])
    batch = next((value for value in (arguments, *args) if isinstance(value, val.Batch)), None)
    generates = isinstance(function, val.Model) or any(made is function for made, _ in trace.used)
    if batch is not None and not generates:
        trains = not functions or any(id(one.node) in trace.applying for one in functions)
        whole = batch.whole and not strategy.kinds & WORKERS  # a worker may have one device and its own data
        trace.undistributed += [(batch.node, strategy)] if trains and whole else []
        trace.restarted += [(batch.node, strategy)] if batch.first else []
    parts = returned.items if isinstance(returned, val.Many) else [returned]
    shown = [part if part is val.SCALED else UNKNOWN for part in parts]
    return val.Many(shown) if isinstance(returned, val.Many) else shown[0]


def _model_method(call: Call, model: val.Model | None, name: str) -> Value:
    if name in {"compile", "fit"} and isinstance(call.node.func, ast.Attribute):
        call.interpreter.trained.add(ast.unparse(call.node.func.value))
    if name == "compile":
        _compiled(call, model)
    elif name in {"fit", "fit_generator"}:
        _fitted(call, model)
    elif name in _ON_BATCH and model is not None and not call.interpreter.in_replica:
        call.interpreter.trace.on_batch.append((call.site, name, model))
    elif name in {"evaluate", "evaluate_generator"}:
        call.interpreter.trace.evaluated.append(call.interpreter.trace.compiled_of(model))
    elif name in _SAVES:
        call.save(call.get(0, "filepath"), f"model.{name}", model.strategy if model is not None else None)
    elif name == "add_loss" and model is not None:
        _add_loss(call, model, name)
    elif name == "add" and model is not None:
        model.plain = False
        call.build_on(call.args)
        call.draw(call.args)
    return UNKNOWN


def _add_loss(call: Call, layer: val.Model | val.Layer, name: str) -> Value:
    if name == "add_loss" and layer.place is val.Place.INSIDE:
        call.interpreter.trace.added.append((call.site, call.first is val.SCALED, layer.strategy))
    return UNKNOWN


def _compiled(call: Call, model: val.Model | None) -> None:
    if model is None and not any("optimizer" in key or key == "loss" for key in call.keywords):
        return
    optimizer, metrics, jit = call.get(0, "optimizer"), call.get(2, "metrics"), call.keywords.get("jit_compile")
    others = [value for value in call.keywords.values() if isinstance(value, val.Optimizer)]
    objects = [item for item in getattr(metrics, "items", ()) if isinstance(item, val.Metric)]
    strategy = model.strategy if model is not None else None
    other = strategy is not None and strategy.joined and strategy.kinds >= DEFAULT and call.interpreter.conditional > 0
    for one in others if optimizer is None and others else [optimizer]:
        where = call.site, model, call.interpreter.place, call.interpreter.strategy, _optimizer(call, one)
        mixes = not call.spread and not other and bool(call.args or call.keywords) and _creates_outside(one)
        options = isinstance(jit, val.Truth) and jit.value, _several_steps(call), mixes, other, _scalar_loss(call)
        call.interpreter.trace.compiled.append(Compiled(*where, objects, *options))


def _optimizer(call: Call, given: Value | None) -> val.Optimizer | None:
    """The optimizer, also if only its name is given."""
    if isinstance(given, val.Text) and given.value.lower() == "sgd":
        return call.create(val.Optimizer, rate=val.Number(0.01), algorithm="SGD")
    return given if isinstance(given, val.Optimizer) else None


def _creates_outside(optimizer: Value | None) -> bool:
    """Whether an optimizer has variables outside scopes if it is compiled there. Plain SGD has none of the model's."""
    if isinstance(optimizer, val.Optimizer):
        return optimizer.place is val.Place.OUTSIDE and optimizer.slots
    return optimizer is None or (isinstance(optimizer, val.Text) and optimizer.value.lower() != "sgd")


def _scalar_loss(call: Call) -> str:
    """The loss as code, if it certainly returns one number for the whole batch."""
    loss = call.get(1, "loss")
    if isinstance(loss, val.ScalarLoss):
        return loss.name
    if isinstance(loss, val.Text):
        return repr(loss.value) if loss.value in _SCALAR_LOSSES else ""
    name, function = "", loss
    if isinstance(loss, val.Object) and loss.cls is not None and "keras.losses.Loss" in loss.cls.external_bases():
        name, function = loss.cls.node.name, loss.cls.member("call")
        function = function.bound(loss) if isinstance(function, Function) else function
    if not isinstance(function, Function):
        return ""
    with call.interpreter.scoped(val.Place.UNSURE, None):
        returned = call.interpreter.follow(function, [UNKNOWN, UNKNOWN], {})
    return (name or getattr(function.node, "name", "the lambda")) if type(returned) is val.Averaged else ""


def _several_steps(call: Call) -> ast.AST | None:
    given = call.keywords.get("steps_per_execution")
    several = isinstance(given, val.Number) and given.value is not None and given.value > 1
    return next(item.value for item in call.node.keywords if item.arg == "steps_per_execution") if several else None


def _fitted(call: Call, model: val.Model | None, foreign: val.Foreign | None = None) -> Value:
    trace = call.interpreter.trace
    around = foreign or call.interpreter
    data = call.get(0, "x", "generator") or UNKNOWN
    data, batch_size = dataset_of(data) or data, as_number(call.get(2, "batch_size") or val.NONE)
    if batch_size is val.NONE and call.get(1, "y") not in {None, val.NONE} and not call.spread:
        batch_size = val.Number(32)  # the default for arrays
    compiled = trace.compiled_of(model)
    for writer in getattr(call.keywords.get("callbacks"), "items", ()):
        if isinstance(writer, val.Writer):
            trace.saved.append(writer.saved._replace(strategy=call.certain((model or around).strategy)))
    steps = call.spread or "steps_per_epoch" in call.keywords
    event = Fitted(call.site, model, around.place, around.strategy, data, batch_size, compiled, steps)
    trace.fitted.append(event)
    call.count_steps(["steps_per_epoch"])
    if event.compiled is not None and event.compiled.optimizer is not None:
        event.compiled.optimizer.built = True
    if model is not None and model.cls is not None and event.home is not None:
        _train_by_hand(call, model, model.cls, event.home)
    return UNKNOWN


def _train_by_hand(call: Call, model: val.Model, cls: val.Class, strategy: val.Strategy) -> None:
    """What the methods of the script do that ``fit`` runs on every replica."""
    for name in ("train_step", "compute_loss"):
        member = cls.member(name)
        if isinstance(member, Function):
            with call.interpreter.scoped(val.Place.INSIDE, strategy, in_replica=True):
                returned = call.interpreter.follow(member.bound(model), [], {}, spread=True)
            if name == "compute_loss" and type(returned) is val.Averaged:
                call.interpreter.trace.averaged.append((returned, strategy))


def _scope_method(call: Call, scope: val.Scope, _: str) -> Value:
    """A scope is entered without ``with``, so its end is unknown."""
    call.interpreter.trace.unclear = True
    if scope.strategy is not None:
        scope.strategy.escaped = True
    call.interpreter.place, call.interpreter.strategy = val.Place.UNSURE, None
    return UNKNOWN


def _texts(values: Sequence[Value]) -> list[str]:
    return [value.value for value in values if isinstance(value, val.Text)]


def _add_option(call: Call) -> Value:
    """``parser.add_argument``."""
    names = _texts(call.args)
    default, target = call.keywords.get("default"), call.keywords.get("dest")
    if isinstance(default, val.Text | val.Number) and names:
        long = next((name for name in names if name.startswith("--")), names[0])
        key = target.value if isinstance(target, val.Text) else long.lstrip("-").replace("-", "_")
        call.interpreter.defaults[key] = default
    return UNKNOWN


def _tasks(call: Call) -> Value:
    """``cluster_spec().num_tasks("worker")``."""
    job = call.first
    return val.Number(None, counts=val.WORKERS) if isinstance(job, val.Text) and job.value == "worker" else UNKNOWN


def _for_replica(call: Call) -> Value:
    """``get_per_replica_batch_size`` of an input context. Its argument is the size for all replicas."""
    strategy = call.interpreter.feeding
    if strategy is not None:
        size = as_number(call.first)
        data = val.Dataset(source_shown=False, batch=size, node=call.site, drops=True, prefetched=True)
        call.interpreter.trace.distributed.append((strategy, data))
    return UNKNOWN


def _perhaps_run(call: Call) -> Value:
    """``run`` of an object that may be a strategy, and is one by its name."""
    call.interpreter.trace.handed |= {id(value.node) for value in call.args if isinstance(value, Function)}
    function = call.first
    if isinstance(function, Function) and _is_strategy(call) and (call.args[1:] or call.keywords):
        return _run(call, val.Strategy(SOME, call.site))
    return unknown(call, UNKNOWN)


def _is_strategy(call: Call) -> bool:
    receiver = call.node.func.value if isinstance(call.node.func, ast.Attribute) else call.node
    return "strategy" in ast.unparse(receiver).rpartition(".")[2].lower()


def _merged(call: Call) -> Value:
    """``merge_call`` of the context of a replica: the function gets the strategy, too."""
    function, arguments = call.get(0, "merge_fn"), call.get(1, "args")
    given = arguments.items if isinstance(arguments, val.Many) else ()
    return call.interpreter.follow(function, [UNKNOWN, *given], {}) if isinstance(function, Function) else UNKNOWN


_RESULTS: Mapping[str, Callable[[Call], Value]] = {
    "run": _perhaps_run,
    "experimental_run_v2": _perhaps_run,
    "get": from_configuration,
    "get_per_replica_batch_size": _for_replica,
    "add_argument": _add_option,
    "num_tasks": _tasks,
    "experimental_distribute_dataset": lambda call: _strategy_method(call, val.Strategy(SOME, call.site), _DISTRIBUTE),
    "merge_call": _merged,
    "scope": lambda _: val.Scope(None, certain=False),
    "parse_args": lambda _: val.Flags(),
    "parse_known_args": lambda _: val.Many([val.Flags(), UNKNOWN]),
    "strftime": lambda call: next(map(interpolated, _texts(call.args[-1:])), UNKNOWN),
}
"""What methods return whose receiver is unknown."""


def _is_trained(call: Call) -> bool:
    """Whether ``fit`` or ``compile`` was called on the same name."""
    return isinstance(call.node.func, ast.Attribute) and ast.unparse(call.node.func.value) in call.interpreter.trained


def _unknown_method(call: Call, receiver: Value, name: str) -> Value:
    _applied(call, name)
    if name in _RESULTS:
        return _RESULTS[name](call)
    if name in {"compile", "fit", "fit_generator", "save_weights"} or (name in _SAVES and _is_trained(call)):
        return _model_method(call, None, name)
    if name in _BATCHING:
        return pipeline(call, receiver, name)
    if name == "enter_context":
        for value in call.args:
            if isinstance(value, val.Scope):
                return _scope_method(call, value, name)
    if name == "gradient" and call.args:
        return val.Gradients(call.args[0] if isinstance(call.args[0], val.Averaged) else None)
    return unknown(call, receiver)


def _distribution_method(call: Call, distribution: val.Distribution, name: str) -> Value:
    if name == "scope":
        call.interpreter.set_distribution(call.site)
    return distribution


def _foreign_method(call: Call, foreign: val.Foreign, name: str) -> Value:
    inside, given = foreign.place is val.Place.INSIDE, (*call.args, *call.keywords.values())
    if name == "compile" and inside and foreign.model is None and any(isinstance(one, val.Optimizer) for one in given):
        foreign.model = val.Model(foreign.node, foreign.place, foreign.strategy)
    if foreign.model is not None:
        return _model_method(call, foreign.model, name)
    if name in {"fit", "fit_generator"}:
        return _fitted(call, None, foreign if inside else None)
    if foreign.batch is not None and name in _KEEPING | _TRUNCATING | {"prefetch", "repeat"}:
        return pipeline(call, foreign, name)
    return _unknown_method(call, foreign, name)


_BY_RECEIVER: Mapping[type, Callable[[Call, Any, str], Value]] = {
    val.Strategy: _strategy_method,
    val.Model: _model_method,
    val.Layer: _add_loss,
    val.Optimizer: update,
    val.Metric: update,
    val.Dataset: pipeline,
    val.Scope: _scope_method,
    val.Object: _unknown_method,
    Value: _unknown_method,
    val.Flags: _unknown_method,
    val.Given: _unknown_method,
    val.Text: text_method,
    val.Foreign: _foreign_method,
    val.Table: table_method,
    val.Many: list_method,
    val.Distribution: _distribution_method,
}
"""By the class of the receiver. Methods of the others (layers, tensors) do nothing that a rule asks for."""
