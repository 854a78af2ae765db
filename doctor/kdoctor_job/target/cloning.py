"""Copies a model as it is: its objects with what they hold, and new variables with equal values.

Keras copies from configurations, which many classes of users do not return. Here everything that a training could
change is copied: objects of Keras and of the user, lists, variables of enclosing functions. What it cannot change is
shared: modules, classes, tensors, data sets, large arrays.
"""

from __future__ import annotations

import collections
import contextlib
import copy
import enum
import functools
import random
import re
import sys
import threading
import types
import weakref
from typing import Any, Callable, Collection, Deque, Dict, Iterator, List

import numpy as np
import tensorflow as tf

from kdoctor_job.target.layers import REACHED, layers_of
from kdoctor_job.target.namespaces import Reached, Users, member

_LARGEST, _MOST = 2**26, 100_000
"""Bytes of an array, and elements of a list. Larger ones are data, which a step only reads."""
_PRECISE, _OTHERS = "float64", ("float32", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16")
_FOR_THIS_OBJECT = ("train_function", "test_function", "predict_function", "train_tf_function")
"""What ``fit`` keeps in a model."""
_NUMBER_IN_TEXT = re.compile(r"(\d{9,})(_ib-\d+)?")
"""The number of an object, as Keras writes that of a tensor and that of a node."""
_SMALLEST_NUMBER = 2**30
"""An integer below is a count, not the number of an object."""
_SHARED = (type, types.ModuleType, enum.Enum, tf.Tensor, tf.data.Dataset)
_AUTO_TRACKABLE = tf.Module.__mro__[1]


class CopyError(Exception):
    """The model cannot be copied, or not without an option; the message says why."""


def clone(keras: Any, model: Any) -> Any:
    """A copy of the model with its optimizer, metrics and arguments of ``compile``, made in the current scope."""
    return _Copies(keras, model).of(model)


@contextlib.contextmanager
def precise(keras: Any, *, applies: bool) -> Iterator[None]:
    """Have copies and layers that are made meanwhile compute in float64."""
    if not applies:
        yield
        return
    if hasattr(keras, "config"):
        policy, set_policy = keras.config.dtype_policy(), keras.config.set_dtype_policy
    else:  # tf_keras
        policy, set_policy = keras.mixed_precision.global_policy(), keras.mixed_precision.set_global_policy
    before = keras.backend.floatx()
    try:
        keras.backend.set_floatx(_PRECISE)
        set_policy(_PRECISE)
        yield
    finally:
        keras.backend.set_floatx(before)
        set_policy(policy)


class _Copies:
    """The copies of objects that refer to each other. Each is made empty and filled later: models nest deeply."""

    def __init__(self, keras: Any, model: Any) -> None:
        self._is_precise = str(keras.backend.floatx()) == _PRECISE
        self._made: Dict[int, Any] = {}
        self._kept: List[Any] = []
        """The originals, so that no other object gets the number of one."""
        self._unique: Dict[str, str] = {}
        """The names by which optimizers of Keras 2 know variables."""
        self._waiting: Deque[Callable[[], object]] = collections.deque()
        self._last: Deque[Callable[[], object]] = collections.deque()
        """Fills what names objects by number, when they are copied."""
        self._keras = keras
        self._is_users = Users(model)
        self._reached = Reached(self._is_users, self._is_state)
        self._classes: Dict[Any, Any] = {}
        self._modules: Dict[int, Dict[str, Any]] = {}
        """The variables of modules as functions of the copy have them."""
        self._by_name: Dict[str, Callable[[Any], Any]] = {
            "_DictWrapper": self._wrapped_dict,
            "_TupleWrapper": self._wrapped_tuple,
            "_ObjectIdentityWrapper": self._by_identity,
            "_WeakObjectIdentityWrapper": self._by_identity,
            "AutoCastVariable": self._casting,
            "AutoCastDistributedVariable": self._casting,
        }
        self._by_kind: Dict[Any, Callable[[Any], Any]] = {
            tf.Variable: self._variable,
            type(tf.function(lambda: None)): self._compiled,
            tf.distribute.Strategy: lambda _: tf.distribute.get_strategy(),
            np.ndarray: self._array,
            dict: self._dict,
            list: self._list,
            tuple: self._tuple,
            set: self._set,
            frozenset: self._frozenset,
            collections.deque: self._deque,
            types.FunctionType: self._function,
            types.CellType: self._cell,
            types.MethodType: self._method,
            functools.partial: self._partial,
            weakref.ref: self._reference,
            weakref.WeakSet: self._weak_set,
            weakref.WeakKeyDictionary: self._weak_dict,
            threading.local: self._of_thread,
            random.Random: self._generator,
            np.random.Generator: self._generator,
            np.random.RandomState: self._generator,
        }

    def of(self, value: Any) -> Any:
        """The copy of a value with all that it refers to."""
        made = self._one(value)
        while self._waiting or self._last:
            (self._waiting or self._last).popleft()()
        for one in self._made.values():
            if isinstance(one, self._keras.Model):  # it knows a strategy, or that there is none
                name = "_distribute_strategy" if hasattr(one, "_distribute_strategy") else "_distribution_strategy"
                vars(one)[name] = tf.distribute.get_strategy() if tf.distribute.has_strategy() else None
        own = {id(layer) for layer in (made, *layers_of(made))}
        copied = [one for one in self._made.values() if isinstance(one, self._keras.layers.Layer)]
        metric = self._keras.metrics.Metric  # a layer in Keras 2
        vars(made)[REACHED] = [one for one in copied if id(one) not in own and not isinstance(one, metric)]
        return made

    def _keep(self, value: Any, made: Any) -> Any:
        self._made[id(value)] = made
        self._kept.append(value)
        return made

    def _one(self, value: Any) -> Any:
        """The copy of a value, which may be filled later."""
        if id(value) in self._made:
            return self._made[id(value)]
        kind = type(value)
        if kind in (int, str, float, bool, type(None)) or isinstance(value, _SHARED):
            return self._typed(value)
        if isinstance(value, (list, tuple, dict, set)) and len(value) > _MOST:
            return value
        make = self._by_name.get(kind.__name__)
        make = make or next((one for base, one in self._by_kind.items() if issubclass(kind, base)), None)
        if make is not None:
            return make(value)
        return self._object(value) if _is_copied(kind) else value

    def _object(self, value: Any) -> Any:
        try:
            made = self._keep(value, object.__new__(self._class(type(value))))
        except TypeError:  # its class is not Python's
            return value
        return self._with_attributes(value, made)

    def _with_attributes(self, value: Any, made: Any) -> Any:
        slots = [name for base in type(value).__mro__ for name in vars(base).get("__slots__", ())]
        held = getattr(value, "__dict__", {})

        def fill() -> None:
            for name, one in held.items():
                vars(made)[name] = None if name in _FOR_THIS_OBJECT else self._attribute(name, one)
            for name in slots:
                if hasattr(value, name) and name[:2] != "__":
                    object.__setattr__(made, name, self._one(getattr(value, name)))

        if held or slots:
            self._waiting.append(fill)
        return made

    # What contains others.

    def _list(self, value: Any) -> Any:
        made = self._keep(value, _empty(value))
        self._later(value, lambda: list.extend(made, map(self._numbered, value)))
        return self._with_attributes(value, made)

    def _set(self, value: Any) -> Any:
        made = self._keep(value, _empty(value))
        self._later(value, lambda: set.update(made, map(self._numbered, value)))
        return self._with_attributes(value, made)

    def _dict(self, value: Any) -> Any:
        made = self._keep(value, _empty(value))
        if isinstance(value, collections.defaultdict):
            made.default_factory = value.default_factory
        put = (collections.OrderedDict if isinstance(value, collections.OrderedDict) else dict).__setitem__

        def fill() -> None:
            for name, one in value.items():
                put(made, self._numbered(name), self._numbered(one))

        self._later([*value, *value.values()], fill)
        return self._with_attributes(value, made)

    def _deque(self, value: Any) -> Any:
        made = self._keep(value, type(value)([], value.maxlen))
        self._waiting.append(lambda: made.extend(map(self._one, value)))
        return made

    def _wrapped_dict(self, value: Any) -> Any:
        made = self._keep(value, type(value)({}))
        self._later(
            [*value], lambda: made.update({self._numbered(name): self._one(one) for name, one in value.items()})
        )
        return made

    def _wrapped_tuple(self, value: Any) -> Any:
        return self._keep(value, type(value)(self._one(value.__wrapped__)))

    def _tuple(self, value: Any) -> Any:
        parts = [self._one(one) for one in value]
        if all(one is other for one, other in zip(parts, value)):
            return value
        return self._keep(value, tuple.__new__(type(value), parts))

    def _frozenset(self, value: Any) -> Any:
        return self._keep(value, frozenset(map(self._one, value)))

    def _later(self, parts: Any, fill: Callable[[], object]) -> None:
        flat = (one for part in parts for one in (part if isinstance(part, tuple) else (part,)))
        (self._last if any(map(_may_be_number, flat)) else self._waiting).append(fill)

    def _numbered(self, value: Any) -> Any:
        """The copy of an element. The number of an object that was copied becomes that of its copy."""
        if type(value) is int and value in self._made:
            return id(self._made[value])
        if type(value) is str and _may_be_number(value):
            named = _NUMBER_IN_TEXT.fullmatch(value)
            if named and int(named[1]) in self._made:
                return f"{id(self._made[int(named[1])])}{named[2] or ''}"
            return self._unique.get(value, value)
        return tuple(map(self._numbered, value)) if type(value) is tuple else self._one(value)

    # Functions.

    def _function(self, value: Any) -> Any:
        given, named = (self._one(one) for one in (value.__defaults__, tuple((value.__kwdefaults__ or {}).items())))
        used = self._reached.names(value) if self._is_users(value) else ()
        if value.__closure__ is None and given is value.__defaults__ and not (named or used):
            return value
        scope = self._module(value.__globals__, used) if used else value.__globals__
        cells = tuple(map(self._one, value.__closure__ or ()))
        made = types.FunctionType(value.__code__, scope, value.__name__, given, cells or None)
        self._keep(value, made)
        made.__kwdefaults__ = dict(named) or None
        for name in ("__qualname__", "__module__", "__doc__", "__annotations__"):
            setattr(made, name, getattr(value, name))
        return self._with_attributes(value, made)

    def _module(self, variables: Dict[str, Any], used: Collection[str]) -> Dict[str, Any]:
        made = self._modules.setdefault(id(variables), dict(variables))
        self._waiting.append(lambda: made.update({name: self._one(variables[name]) for name in used}))
        return made

    def _class(self, kind: Any) -> Any:
        """The class, or one derived from it whose methods use the copies of what they reach."""
        if kind not in self._classes:
            self._classes[kind] = kind
            bases = [base for base in kind.__mro__[1:] if self._class(base) is not base] if self._is_users(kind) else []
            names = list(self._reached.of_class(kind)) if self._is_users(kind) else []
            if names or bases:
                members = {name: member(vars(kind)[name], self._one) for name in names}
                members.update(__module__=kind.__module__, __qualname__=kind.__qualname__, __doc__=kind.__doc__)
                made = type(kind)(kind.__name__, (kind, *map(self._class, bases)), members)
                self._classes[kind] = made
        return self._classes[kind]

    def _is_state(self, value: Any) -> bool:
        """Whether a variable of a module is copied: it may change, and is neither function nor class."""
        if isinstance(value, (types.FunctionType, types.MethodType, functools.partial, *_SHARED)):
            return False
        kind = type(value)
        is_made = any(issubclass(kind, one) and one not in (tuple, frozenset) for one in self._by_kind)
        return is_made or (hasattr(value, "__dict__") and _is_copied(kind))

    def _cell(self, value: Any) -> Any:
        made = self._keep(value, types.CellType())

        def fill() -> None:
            with contextlib.suppress(ValueError):  # not assigned yet
                made.cell_contents = self._one(value.cell_contents)

        self._waiting.append(fill)
        return made

    def _method(self, value: Any) -> Any:
        return types.MethodType(self._one(value.__func__), self._one(value.__self__))

    def _partial(self, value: Any) -> Any:
        named = {name: self._one(one) for name, one in value.keywords.items()}
        return self._keep(value, type(value)(self._one(value.func), *self._one(value.args), **named))

    def _compiled(self, value: Any) -> Any:
        inner = self._one(value.python_function)
        return value if inner is value.python_function else self._keep(value, value._clone(inner))  # noqa: SLF001

    # What refers to an object without keeping it.

    def _reference(self, value: Any) -> Any:
        target = value()
        return value if target is None else self._keep(value, weakref.ref(self._one(target)))

    def _weak_dict(self, value: Any) -> Any:
        made = self._keep(value, _empty(value))
        weakref.WeakKeyDictionary.__init__(made)
        more = {name: one for name, one in vars(value).items() if name not in vars(made)}

        def fill() -> None:
            vars(made).update({name: self._one(one) for name, one in more.items()})
            made.update({self._one(name): self._one(one) for name, one in value.items()})

        self._waiting.append(fill)
        return made

    def _weak_set(self, value: Any) -> Any:
        made = self._keep(value, type(value)())
        self._waiting.append(lambda: made.update(map(self._one, value)))
        return made

    def _by_identity(self, value: Any) -> Any:
        return type(value)(self._one(value.unwrapped))

    def _of_thread(self, value: Any) -> Any:
        return self._with_attributes(value, self._keep(value, type(value)()))

    # Numbers, and their types.

    def _variable(self, value: Any) -> Any:
        with tf.init_scope():
            made = tf.Variable(
                self._typed(_read(value)),
                trainable=value.trainable,
                name=value.name.partition(":")[0],
                dtype=None if self._is_precise else value.dtype,
                shape=value.shape,
                constraint=self._one(value.constraint),
                aggregation=value.aggregation,
                synchronization=value.synchronization,
            )
        self._unique[value._unique_id] = made._unique_id  # noqa: SLF001 - Keras 2 has no other name for it
        return self._keep(value, made)

    def _casting(self, value: Any) -> Any:
        made = self._one(value._variable)  # noqa: SLF001 - no public equivalent
        return self._keep(value, sys.modules[type(value).__module__].create_autocast_variable(made))

    def _array(self, value: Any) -> Any:
        return value if value.nbytes > _LARGEST else self._keep(value, self._typed(value.copy()))

    def _generator(self, value: Any) -> Any:
        return self._keep(value, copy.deepcopy(value))

    def _attribute(self, name: str, value: Any) -> Any:
        if self._is_precise and "dtype" in name:
            if isinstance(value, tf.DType) and value.is_floating:
                return tf.as_dtype(_PRECISE)
            if isinstance(value, str) and value in _OTHERS:
                return _PRECISE
            if getattr(value, "name", None) in _OTHERS and "Policy" in type(value).__name__:
                return type(value)(_PRECISE)
        return self._one(value)

    def _typed(self, value: Any) -> Any:
        """A tensor or array in the type of numbers of the copy."""
        if not self._is_precise or not hasattr(value, "dtype"):
            return value
        if isinstance(value, (np.ndarray, np.generic)):
            return value.astype(_PRECISE) if value.dtype.name in _OTHERS else value
        is_number = tf.is_tensor(value) and value.dtype.is_floating and hasattr(value, "numpy")
        return tf.cast(value, _PRECISE) if is_number else value


def _is_copied(kind: Any) -> bool:
    """Whether objects of the class are copied: not those of Python and NumPy, and few of TensorFlow's."""
    if hasattr(kind, "__del__"):  # it may close what the original uses
        return False
    package = str(kind.__module__).partition(".")[0]
    if package == "tensorflow":
        return issubclass(kind, _AUTO_TRACKABLE) or kind.__name__.startswith("ObjectIdentity")
    return package not in (*getattr(sys, "stdlib_module_names", ("threading", "logging")), "numpy", "builtins")


def _empty(value: Any) -> Any:
    """A new container of the same class, without calling its initializer."""
    kind: Any = type(value)
    return kind.__new__(kind)


def _may_be_number(value: Any) -> bool:
    if type(value) is str:
        return bool(_NUMBER_IN_TEXT.fullmatch(value)) or value.rpartition("_")[2].isdigit()
    return type(value) is int and value > _SMALLEST_NUMBER


def _read(value: Any) -> Any:
    try:
        return value.numpy()
    except (NotImplementedError, ValueError):  # it is not one value for all replicas
        return tf.distribute.get_strategy().experimental_local_results(value)[0].numpy()
