"""The value of each kind of expression."""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import reduce
from typing import Any

from kdoctor_lint.flow import values as val
from kdoctor_lint.flow.binding import bind
from kdoctor_lint.flow.calls import evaluate_call
from kdoctor_lint.flow.environment import Env, Function
from kdoctor_lint.flow.interpreter import Evaluator, Interpreter
from kdoctor_lint.flow.joining import item_of, join
from kdoctor_lint.flow.removals import note_attribute, note_name
from kdoctor_lint.flow.texts import as_number, given, interpolated, text_of
from kdoctor_lint.flow.values import UNKNOWN, Value, is_unknown
from kdoctor_lint.names import DEFAULT, Kind, canonical, kind_of

_OPERATORS: Mapping[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Mult: operator.mul, ast.Sub: operator.sub, ast.Eq: operator.eq, ast.NotEq: operator.ne,
    ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Lt: operator.lt, ast.LtE: operator.le,
}  # fmt: skip
_LARGEST = 2.0**53  # Numbers above it are not computed with
_LOSS_WEIGHT = re.compile(r"alpha|beta|gamma|lambda?|weight|coeff?|balance|ratio|classes|(^|_)w(_|$)", re.IGNORECASE)
_WEIGHTS = frozenset({"trainable_variables", "trainable_weights"})


def _name(_: Interpreter, node: Any, env: Env) -> Value:
    return env.get(node.id)


def _constant(_: Interpreter, node: Any, __: Env) -> Value:
    value = node.value
    if isinstance(value, str):
        return val.Text(value)
    if value is None:
        return val.NONE
    if isinstance(value, bool):
        return val.Truth(value=value)
    return val.Number(value) if isinstance(value, int | float) else UNKNOWN


def _attribute(interpreter: Interpreter, node: Any, env: Env) -> Value:
    owner = interpreter.evaluate(node.value, env)
    name = node.attr
    note_attribute(interpreter, node, owner, env)
    if name == "num_replicas_in_sync":
        return val.Number(None, counts=val.WORKERS | val.DEVICES)
    if isinstance(owner, val.Choice):
        return reduce(join, [_read(interpreter, node, option) for option in owner.options])
    return _read(interpreter, node, owner)


def _read(interpreter: Interpreter, node: ast.Attribute, owner: Value) -> Value:
    name = node.attr
    if isinstance(owner, val.Object):
        return _member(interpreter, node, owner)
    reader = _READERS.get(owner.__class__)
    return reader(interpreter, node, owner) if reader else val.Method(owner, name)


def _of_module(interpreter: Interpreter, node: Any, owner: val.External) -> Value:
    full = canonical(f"{owner.name}.{node.attr}")
    note_name(interpreter, node, full)
    if owner.name.endswith("flags.FLAGS") and node.attr in (*interpreter.defaults, *interpreter.options):
        return _option(interpreter, node, node.attr)
    return val.External(full)


def _option(interpreter: Interpreter, node: ast.expr, name: str) -> Value:
    """An option of the command line, or what the script has set it to."""
    default = interpreter.defaults.get(name)
    if name in interpreter.options:
        return interpreter.options[name]
    if isinstance(default, val.Number):
        return val.Number(None, frozenset({name}), given=True)
    return given(ast.unparse(node), default.value if isinstance(default, val.Text) else "")


def _bound(
    interpreter: Interpreter, node: ast.AST, member: Value | None, owner: val.Object | val.Class
) -> Value | None:
    """A member of a class as an instance or the class has it. A property is what its function returns."""
    if not isinstance(member, Function):
        return member
    function = member.bound(owner)
    if isinstance(owner, val.Class) or not function.decorators & {"property", "cached_property"}:
        return function
    with interpreter.calling(function, node):
        return interpreter.follow(function, [], {})


def _member(interpreter: Interpreter, node: ast.Attribute, owner: val.Object) -> Value:
    name = node.attr
    if interpreter.in_replica and name in _WEIGHTS and isinstance(owner, val.Made):
        interpreter.use(owner)
    if name in owner.attributes:
        return owner.attributes[name]
    if isinstance(owner, val.Model) and name in {"input", "output"}:
        return val.Tensor(owner.node, owner.place, owner.strategy)
    if isinstance(owner, val.Model) and name == "optimizer":
        compiled = interpreter.trace.compiled_of(owner)
        known = compiled.optimizer if compiled is not None else None
        return known or val.Optimizer(owner.node, val.Place.UNSURE, None, built=True)
    if name == "model" and owner.cls and Kind.CALLBACK in map(kind_of, owner.cls.external_bases()):
        return val.Model(owner.cls.node, val.Place.UNSURE, None)
    member = owner.cls.member(name) if owner.cls else None
    return _bound(interpreter, node, member, owner) or val.Method(owner, name)


def _parent(interpreter: Interpreter, node: Any, owner: val.Super) -> Value:
    member = _bound(interpreter, node, owner.cls.inherited(node.attr), owner.owner)
    return member or val.Method(owner.owner, node.attr)


_READERS: Mapping[type, Callable[[Interpreter, Any, Any], Value]] = {
    val.External: _of_module,
    val.Checkpoint: lambda interpreter, node, owner: owner.saved.get(node.attr) or _of_module(interpreter, node, owner),
    val.Super: _parent,
    val.Class: lambda interpreter, node, cls: _bound(interpreter, node, cls.member(node.attr), cls) or UNKNOWN,
    val.Module: lambda _, node, module: module.member(node.attr),
    val.Flags: lambda interpreter, node, _: _option(interpreter, node, node.attr),
    val.Method: lambda _, node, __: val.Method(UNKNOWN, node.attr),
}
"""What an attribute of a value is. Those of others are methods."""


def _binary(interpreter: Interpreter, node: Any, env: Env) -> Value:
    left, right = interpreter.evaluate(node.left, env), interpreter.evaluate(node.right, env)
    of_loss = isinstance(left, val.Averaged) or isinstance(right, val.Averaged)
    if (
        isinstance(node.op, ast.Mult | ast.Div | ast.FloorDiv | ast.Sub)
        and not of_loss
        and not _is_path(node.op, left, right)
    ):
        left, right = as_number(left), as_number(right)
    if isinstance(left, val.Number) and isinstance(right, val.Number):
        return _combined(interpreter, node.op, left, right)
    if isinstance(left, val.Many) and isinstance(right, val.Many) and isinstance(node.op, ast.Add):
        return val.Many([*left.items, *right.items], left.whole and right.whole)
    if left is val.TOTAL and isinstance(node.op, ast.Div):
        return average_of(node, right)
    factor = right if left is val.TOTAL else left
    if val.TOTAL in {left, right} and isinstance(node.op, ast.Mult) and isinstance(factor, val.Number):
        part = average_of(node, replace(factor, names=factor.per))  # times ``1 / size``
        return val.TOTAL if factor.value is not None and not factor.names else part
    adds = isinstance(node.op, ast.Add | ast.Sub)
    sums = of_loss and adds and any(map(is_unknown, (left, right))) and not interpreter.in_replica
    if sums or (adds and val.TOTAL in {left, right} and not of_loss):
        return UNKNOWN if sums else val.TOTAL  # perhaps one number for each example
    loss = _of_loss(node, left, right)
    return _of_kinds(node, left, right) if loss is None else loss


def _is_path(op: ast.operator, left: Value, right: Value) -> bool:
    """Whether it is ``folder / name`` of pathlib. An option as it is is a number if it is divided."""
    texts = [
        isinstance(value, val.Text) or (isinstance(value, val.Given) and not value.names) for value in (left, right)
    ]
    return isinstance(op, ast.Div) and any(texts)


def _of_kinds(node: ast.BinOp, left: Value, right: Value) -> Value:
    """What one operand decides."""
    counts = frozenset[str]().union(*(value.growth for value in (left, right) if isinstance(value, val.Number)))
    if counts:
        return val.Number(None, counts=counts)
    if isinstance(right, val.Number) and isinstance(node.op, ast.Div | ast.FloorDiv) and is_unknown(left):
        return val.Number(None, per=right.names)
    tensor = next((value for value in (left, right) if isinstance(value, val.Tensor)), None)
    return _text(node.op, left, right) if tensor is None else tensor


def _of_loss(node: ast.BinOp, left: Value, right: Value) -> Value | None:
    """A loss with something added to it, or with a weight."""
    averaged = next((value for value in (left, right) if isinstance(value, val.Averaged)), None)
    adds = isinstance(node.op, ast.Add | ast.Sub)
    if averaged is None:
        scaled = next((value for value in (left, right) if value is val.SCALED), None)
        weighted = isinstance(node.op, ast.Mult) and not any(
            isinstance(one, val.Number) and one.scaled for one in (left, right)
        )
        return scaled if adds or weighted or scaled is None else UNKNOWN
    weight, given = (right, node.right) if averaged is left else (left, node.left)
    masked = isinstance(averaged, val.PerExample) and not isinstance(weight, val.Number)
    weighs = isinstance(node.op, ast.Mult) or (isinstance(node.op, ast.Div) and isinstance(node.left, ast.BinOp))
    weighted = weighs and (masked or _is_weight(weight, given))  # also ``(one + other) / 2``
    return averaged if adds or weighted else UNKNOWN


def average_of(node: ast.AST, divisor: Value) -> Value:
    """What a sum over the examples of a replica becomes when it is divided."""
    if divisor is val.TOTAL:
        return val.Averaged(node)
    known = isinstance(divisor, val.Number) and divisor.names and not divisor.scaled
    return val.Averaged(node, size=divisor) if known and isinstance(divisor, val.Number) else UNKNOWN


def _is_weight(value: Value, node: ast.expr) -> bool:
    """Whether a factor of a loss is a weight, and not the part of one replica."""
    if isinstance(value, val.Number):
        return value.value is not None
    return isinstance(node, ast.Name | ast.Attribute | ast.Subscript) and bool(_LOSS_WEIGHT.search(ast.unparse(node)))


def _text(op: ast.operator, left: Value, right: Value) -> Value:
    if isinstance(op, ast.Add) and not isinstance(right, val.Number):
        return text_of([left, right], "")
    if isinstance(op, ast.Mod) and isinstance(left, val.Text):
        return interpolated(left.value)
    if isinstance(op, ast.Div) and isinstance(left, val.Text | val.Given) and isinstance(right, val.Text | val.Given):
        return text_of([left, right], "/")  # of pathlib
    return UNKNOWN


def _combined(interpreter: Interpreter, op: ast.operator, left: val.Number, right: val.Number) -> Value:
    names = left.names | right.names
    if left.scaled or right.scaled:
        if isinstance(op, ast.Mult) and left.scaled != right.scaled:
            interpreter.trace.scaled |= (right if left.scaled else left).keys
        elif right.scaled and isinstance(op, ast.Div | ast.FloorDiv):
            interpreter.trace.divided |= left.keys
        twice = val.TWICE if isinstance(op, ast.Mult) and left.growth & right.growth else frozenset()
        return val.Number(None, names, counts=left.growth | right.growth | twice)
    per, home = left.per | right.per, left.home or right.home
    if isinstance(op, ast.Div | ast.FloorDiv) and not right.home:
        per |= right.names
    if left.value is None or right.value is None:
        product = left.product or (isinstance(op, ast.Mult) and bool(left.names) and bool(right.names))
        return val.Number(None, names, product=product, per=per, home=home)
    compute = _OPERATORS.get(type(op))
    product = left.product or right.product or (isinstance(op, ast.Mult) and bool(names))
    # An infinity or a larger integer cannot be computed with.
    known = compute is not None and all(abs(value) <= _LARGEST for value in (left.value, right.value))
    result = compute(left.value, right.value) if compute and known else None
    return val.Number(result, names, product=product, per=per, home=home)


def _boolean(interpreter: Interpreter, node: Any, env: Env) -> Value:
    values = [interpreter.evaluate(node.values[0], env)]
    certain = len(interpreter.trace.calls)
    values += interpreter.evaluate_all(node.values[1:], env)
    del interpreter.trace.calls[certain:]  # those of the first operand only
    ends = isinstance(node.op, ast.Or)  # the truth that decides
    return val.Truth(value=ends) if ends in map(val.truth_of, values) else reduce(join, values)


def taken_branch(interpreter: Interpreter, test: ast.expr, env: Env) -> int | None:
    """The number of the branch that is meant: ``if NUM_GPUS == 1``, ``if mode == "tpu"``, ``if strategy is None``."""
    if interpreter.conditional:
        return None
    if isinstance(test, ast.UnaryOp):
        taken = taken_branch(interpreter, test.operand, env) if isinstance(test.op, ast.Not) else None
        return None if taken is None else 1 - taken
    sides, sign = [test], None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        sides, sign = [test.left, test.comparators[0]], test.ops[0]
    elif not isinstance(test, ast.Name | ast.Attribute):
        return None
    left, *right = interpreter.evaluate_all(sides, env)
    if right in ([], [val.NONE]) and isinstance(left, val.Strategy) and "unknown" not in left.kinds:
        return int(isinstance(sign, ast.Is | ast.Eq))  # without it, one device trains
    compare = _OPERATORS.get(type(sign))
    one, *other = (value.value if isinstance(value, val.Number | val.Text) else None for value in (left, *right))
    if compare is None or None in {one, *other} or isinstance(one, str) is not isinstance(other[0], str):
        return None
    return 0 if compare(one, other[0]) else 1


def _either(interpreter: Interpreter, node: Any, env: Env) -> Value:
    test, body, other = interpreter.evaluate_all([node.test, node.body, node.orelse], env)
    known, taken = val.truth_of(test), taken_branch(interpreter, node.test, env)
    known = taken == 0 if known is None and taken is not None else known
    default = interpreter.defaults.get(getattr(node.test, "attr", ""))
    if isinstance(getattr(node.body, "op", None), ast.Div) and isinstance(default, val.Truth) and not default.value:
        return other  # ``1 / replicas if FLAGS.scale_loss else 1``
    return join(body, other) if known is None else body if known else other


def _compare(interpreter: Interpreter, node: Any, env: Env) -> Value:
    values = interpreter.evaluate_all([node.left, *node.comparators], env)
    if isinstance(node.ops[0], ast.Is | ast.IsNot) and values[0] is values[1] is val.NONE:
        return val.Truth(value=isinstance(node.ops[0], ast.Is))
    if any(not (isinstance(value, val.Number) and value.value is not None) for value in values):
        for value in values:
            if isinstance(value, val.Number):
                interpreter.trace.verified |= value.names
    return UNKNOWN


def _unary(interpreter: Interpreter, node: Any, env: Env) -> Value:
    operand = interpreter.evaluate(node.operand, env)
    if isinstance(node.op, ast.Not):
        shown = operand.end or None if isinstance(operand, val.Given) else getattr(operand, "value", None)
        return val.Truth(value=not shown) if shown is not None or operand is val.NONE else UNKNOWN
    if isinstance(node.op, ast.USub) and isinstance(operand, val.Number) and operand.value is not None:
        return val.Number(-operand.value, operand.names)
    return operand if isinstance(operand, val.Averaged) or operand in {val.TOTAL, val.SCALED} else UNKNOWN


def _many(interpreter: Interpreter, node: Any, env: Env) -> Value:
    return val.Many(interpreter.evaluate_all(node.elts, env))


def _table(interpreter: Interpreter, node: Any, env: Env) -> Value:
    keys = [interpreter.evaluate(key, env) if key is not None else UNKNOWN for key in node.keys]
    shown: dict[str, Value] = {}
    for key, value, name in zip(keys, interpreter.evaluate_all(node.values, env), node.keys, strict=True):
        if name is None and isinstance(value, val.Table) and value.whole:
            shown |= value.items
        elif not isinstance(key, val.Text):
            return UNKNOWN
        else:
            shown[key.value] = value
    return val.Table(shown)


def _parts(interpreter: Interpreter, node: Any, env: Env) -> Value:
    """A whole that is not followed, such as a set."""
    interpreter.evaluate_all(ast.iter_child_nodes(node), env)
    return UNKNOWN


def _subscript(interpreter: Interpreter, node: Any, env: Env) -> Value:
    owner, index = interpreter.evaluate_all([node.value, node.slice], env)
    if isinstance(index, val.Number) and index.value == 0 and _is_shape(interpreter, owner):
        return val.TOTAL
    variable = isinstance(owner, val.External) and owner.name == "os.environ"
    if isinstance(index, val.Text) and (variable or isinstance(owner, val.Flags) or is_unknown(owner)):
        return given(index.value) if variable else _option(interpreter, node, index.value)
    if isinstance(owner, val.Many) and owner.whole and isinstance(index, val.Number):
        position = int(index.value) if index.value is not None and abs(index.value) < _LARGEST else len(owner.items)
        return owner.items[position] if -len(owner.items) <= position < len(owner.items) else UNKNOWN
    if isinstance(owner, val.Many | val.Table) and not isinstance(node.slice, ast.Slice):
        return item_of(owner, index)
    bounds = [node.slice.lower, node.slice.upper] if isinstance(node.slice, ast.Slice) else []
    moving = all(bounds) and not all(isinstance(bound, ast.Constant) for bound in bounds)
    if moving and is_unknown(owner) and not interpreter.in_replica:
        return val.Batch(node)  # of an array
    kept = isinstance(owner, val.Batch) or (isinstance(owner, val.Dataset) and owner.batch is None)
    return owner if kept else UNKNOWN


def _is_shape(interpreter: Interpreter, value: Value) -> bool:
    return value is val.SHAPE or (interpreter.in_replica and isinstance(value, val.Method) and value.name == "shape")


def _lambda(interpreter: Interpreter, node: Any, env: Env) -> Value:
    return interpreter.define(Function(node, env.closure()))


def _inner(interpreter: Interpreter, node: Any, env: Env) -> Value:
    return interpreter.evaluate(node.value, env)


def _yield(interpreter: Interpreter, node: Any, env: Env) -> Value:
    """What a context manager yields is executed in the scope around it."""
    if interpreter.running and "contextmanager" in interpreter.running[-1].decorators:
        inside = interpreter.strategy if interpreter.place is val.Place.INSIDE else None
        interpreter.give_back(val.Scope(inside or val.Strategy(DEFAULT, node)))
    return interpreter.evaluate(node.value, env) if node.value else UNKNOWN


def _walrus(interpreter: Interpreter, node: Any, env: Env) -> Value:
    value = interpreter.evaluate(node.value, env)
    bind(interpreter, node.target, value, env.closure())
    return value


def _formatted(interpreter: Interpreter, node: Any, env: Env) -> Value:
    return text_of(interpreter.evaluate_all(node.values, env), "")


def _comprehension(interpreter: Interpreter, node: Any, env: Env) -> Value:
    inner = Env(env)
    over = UNKNOWN
    for generator in node.generators:
        over = interpreter.evaluate(generator.iter, inner)
        bind(interpreter, generator.target, over if isinstance(over, val.Gradients) else UNKNOWN, inner)
        interpreter.evaluate_all(generator.ifs, inner)
    element = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
    values = interpreter.evaluate_all(element, inner)
    parts = values[0].items if isinstance(values[0], val.Many) else values
    if isinstance(over, val.Gradients):
        return next((value for value in parts if isinstance(value, val.Gradients)), UNKNOWN)
    plain = len(node.generators) == 1 and not node.generators[0].ifs
    if isinstance(node, ast.ListComp) and isinstance(over, val.Counted) and plain:
        return val.Counted(over.count, _first_text(node.elt))
    return UNKNOWN


def _first_text(node: ast.AST) -> str:
    texts = (part.value for part in ast.walk(node) if isinstance(part, ast.Constant) and isinstance(part.value, str))
    return next(texts, "")


EVALUATORS: Mapping[type, Evaluator] = {
    **dict.fromkeys((ast.List, ast.Tuple), _many),
    **dict.fromkeys((ast.Set, ast.Slice), _parts), ast.Yield: _yield,
    **dict.fromkeys((ast.Starred, ast.Await, ast.FormattedValue, ast.YieldFrom), _inner),
    **dict.fromkeys((ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp), _comprehension),
    ast.Name: _name, ast.Constant: _constant, ast.Attribute: _attribute, ast.Call: evaluate_call, ast.BinOp: _binary,
    ast.BoolOp: _boolean, ast.IfExp: _either, ast.Compare: _compare, ast.UnaryOp: _unary, ast.Dict: _table,
    ast.Subscript: _subscript, ast.Lambda: _lambda, ast.NamedExpr: _walrus, ast.JoinedStr: _formatted,
}  # fmt: skip
"""By the class of the expression. The value of any other is unknown."""
