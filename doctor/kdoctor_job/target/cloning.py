"""Makes another model from the configuration of one, with new optimizers and metrics, because theirs have state."""

from __future__ import annotations

import contextlib
import copy
import inspect
import re
from typing import Any, Dict, Iterator, List

from kdoctor_job.target.layers import layers_of
from kdoctor_job.target.model import given_to_keras, raw_compile
from kdoctor_job.target.options import optimizers_of
from kdoctor_job.target.parts import describe, is_model, is_own_class, keras_of

_UNSET = object()
_UNREGISTERED = r"(?:Could not locate \w+ '|object of type `|identifier: .*'registered_name': ')(\w+)['`]"
"""Names that Keras asks to register."""


class CopyError(Exception):
    """The model cannot be copied; the message says why and what to do."""


_PRECISE, _OTHERS = "float64", ("float32", "float16", "bfloat16", "mixed_float16", "mixed_bfloat16")
_SEVERAL = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_METHODS = ("call", "train_step", "test_step", "compute_loss", "compute_metrics", "make_train_function", "fit")
"""Methods that a job may set on the object."""


def clone(keras: Any, model: Any) -> Any:
    """A copy of the model, not compiled by the same arguments, with new weights.

    Raises:
        CopyError: the copy would be another model.
    """
    replaced = [name for name in _METHODS if name in vars(model)]
    if replaced:
        raise CopyError(
            f"{replaced[0]} was replaced on the model object, so a copy would not have it: pass a function that builds "
            "the model"
        )
    made = _clone(keras, model)
    if type(made) is not type(model):
        kind, other = type(model).__name__, type(made).__name__
        raise CopyError(f"a copy of {kind} would be of the class {other}: pass a function that builds the model")
    return made


def _clone(keras: Any, model: Any) -> Any:
    if hasattr(model, "inputs") and (getattr(model, "_functional", None) or model.inputs):
        return keras.models.clone_model(model, clone_function=lambda layer: _again(keras, layer))
    if type(model) is keras.Sequential:
        return keras.Sequential([_again(keras, layer) for layer in model.layers], name=model.name)
    return _again(keras, model)


def _again(keras: Any, one: Any) -> Any:
    """Another layer or model from the configuration of this one.

    Raises:
        CopyError: Keras does not know its arguments.
    """
    kind = type(one)
    if not _states_arguments(keras, kind) and not _keeps_arguments(keras, one):
        return _from_attributes(keras, one)
    try:
        config = _of_type(one.get_config(), str(keras.backend.floatx()))
    except NotImplementedError:
        return _from_attributes(keras, one)
    try:
        return kind.from_config(config)
    except Exception as error:
        # Keras stores the arguments of the class; a class without **kwargs takes them only.
        kept = getattr(one, "_auto_config", None)
        if kept is not None and not _states_arguments(keras, kind):
            return kind(**kept.config)
        lacking = [name for name in arguments_of(kind, required=True) if name not in config]
        if lacking:
            reason = f"get_config() of {kind.__name__} does not return {' and '.join(lacking)}"
            raise CopyError(_missing(one, reason)) from error
        raise


@contextlib.contextmanager
def precise(keras: Any, *, applies: bool) -> Iterator[None]:
    """Have layers that are made meanwhile compute in float64."""
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


def _of_type(config: Any, kind: str) -> Any:
    """A configuration with float64 in place of any other type of numbers, if that is the type of new layers."""
    if isinstance(config, dict):
        return {name: _of_type(value, kind) for name, value in config.items()}
    if isinstance(config, (list, tuple)):  # also a list that TensorFlow wraps
        made = [_of_type(value, kind) for value in config]
        return tuple(made) if isinstance(config, tuple) else made
    return kind if kind == _PRECISE and config in _OTHERS else config


def _states_arguments(keras: Any, kind: Any) -> bool:
    """Whether the class, or a base class that is not Keras's, defines ``get_config``."""
    owner = next(base for base in kind.__mro__ if "get_config" in vars(base))
    return bool(kind.__module__.split(".")[0] == keras.__name__) or owner.__module__.split(".")[0] != keras.__name__


def _keeps_arguments(keras: Any, one: Any) -> bool:
    """Whether Keras recorded the arguments of this layer or model. Keras 3 keeps the defaults of a model's class."""
    if not isinstance(one, keras.Model) or not arguments_of(type(one)):
        return True

    class Probe(keras.Model):  # type: ignore[misc]  # Keras has no types here
        def __init__(self, width: int = 0) -> None:  # noqa: ARG002
            super().__init__()

    kept = getattr(Probe(width=1), "_auto_config", None)
    return kept is not None and kept.config.get("width") == 1


def _from_attributes(keras: Any, one: Any) -> Any:
    """Another model, with the attributes that are named like the arguments of its class: values, models and layers.

    Raises:
        CopyError: the class needs others, or the model would be another one.
    """
    given: Dict[str, Any] = {}
    for name in arguments_of(type(one)):
        value = getattr(one, name, _UNSET)
        if is_model(value):
            given[name] = clone(keras, value)
        elif isinstance(value, keras.layers.Layer):
            given[name] = _again(keras, value)
        elif is_plain(value):
            given[name] = copy.deepcopy(value)
    reason = f"Keras does not keep the arguments of {type(one).__name__}"
    try:
        made = type(one)(**given)
    except Exception as error:
        raise CopyError(_missing(one, reason)) from error
    if not _is_alike(keras, one, made):
        raise CopyError(_missing(one, reason))
    return made


def compile_again(model: Any, made: Any) -> None:
    """Compile a copy with the ``compile`` of its class, if the model has what it was given as attributes.

    Raises:
        CopyError: it does not.
    """
    defaults = inspect.signature(keras_of(model).Model.compile).parameters
    kept = given_to_keras(model) or {}
    parameters = list(inspect.signature(type(model).compile).parameters.values())[1:]
    names = [one.name for one in parameters if one.kind not in _SEVERAL]
    given = {name: vars(model).get(name, kept.get(name, _UNSET)) for name in names}
    if len(names) < len(parameters):
        more = {name: value for name, value in kept.items() if not is_plain(value) or value != defaults[name].default}
        given = {**more, **given}
    lost = [name for name, value in given.items() if value is _UNSET]
    if lost:
        raise CopyError(f"its class overrides compile() and does not keep {' and '.join(lost)}: {_ADVICE}")
    try:
        made.compile(**{name: _renewed(value) for name, value in given.items()})
    except CopyError:
        raise
    except Exception as error:
        raise CopyError(f"its compile() raises {describe(error)} for a copy: {_ADVICE}") from error


def _renewed(value: Any) -> Any:
    return renew_optimizer(value) if hasattr(value, "apply_gradients") else renew(value)


def _is_alike(keras: Any, one: Any, made: Any) -> bool:
    """Whether the layers have equal configurations, and the attributes of the class that are plain equal values."""
    known = set(vars(keras.Model()))
    own = [name for name, value in vars(made).items() if name not in known and name[0] != "_" and is_plain(value)]
    if any(getattr(one, name, _UNSET) != getattr(made, name) for name in own):
        return False
    try:
        return [_settings(layer) for layer in layers_of(one)] == [_settings(layer) for layer in layers_of(made)]
    except NotImplementedError:
        return False


def _settings(layer: Any) -> Any:
    """The class and configuration of a layer, without names, which Keras numbers."""
    config = layer.get_config()
    named = ("name", "layers", "input_layers", "output_layers")
    return type(layer), {name: value for name, value in config.items() if name not in named}


def same_attributes(keras: Any, model: Any, made: Any) -> None:
    """Compare the plain attributes of the user's classes, which may have been set after the object was made.

    Raises:
        CopyError: one differs.
    """
    ones, others = [model, *layers_of(model)], [made, *layers_of(made)]
    known = set(vars(keras.Model()))
    for one, other in zip(ones, others):
        if not is_own_class(type(one)) or type(one) is not type(other):
            continue
        for name, value in vars(one).items():
            theirs = getattr(other, name, _UNSET)
            if name[0] != "_" and name not in known and theirs is not _UNSET and is_plain(value) and theirs != value:
                raise CopyError(
                    f"attribute {name} of {type(one).__name__} is {value!r}, and {theirs!r} in a copy: pass a function "
                    "that builds the model and sets it"
                )


def is_plain(value: Any) -> bool:
    """Whether the value consists of numbers, strings and lists of them."""
    if isinstance(value, (list, tuple)):
        return all(map(is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


def arguments_of(kind: Any, *, required: bool = False) -> List[str]:
    """The arguments of the class that are its own, not Keras's."""
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    own = [item for item in parameters if item.kind not in _SEVERAL and item.name not in ("name", "dtype", "trainable")]
    return [item.name for item in own if not required or item.default is item.empty]


def _missing(one: Any, reason: str) -> str:
    """The reason, and the line that the class lacks if its arguments are plain values."""
    names = arguments_of(type(one))
    advice = f"{reason}, so it cannot be copied: pass a function that builds the model"
    if not all(is_plain(getattr(one, name, None)) for name in names):
        return advice
    config = ", ".join(f'"{name}": self.{name}' for name in names)
    inherited = "" if is_model(one) else "**super().get_config(), "
    unset = [f"self.{name} = {name}" for name in names if not hasattr(one, name)]
    also = f" (with {', '.join(unset)} in __init__)" if unset else ""
    return f"{advice}, or add to the class: def get_config(self): return {{{inherited}{config}}}{also}"


def why_not(error: Exception) -> str:
    """The error of a copy, and what to do."""
    unregistered = re.search(_UNREGISTERED, str(error))
    if unregistered:
        name = unregistered[1]
        return (
            f"Keras does not find {name} by its name, so the model cannot be copied: pass a function that builds the "
            f"model, or add above {name}: @keras.saving.register_keras_serializable()"
        )
    return f"the model cannot be copied ({describe(error)}): pass a function that builds it"


def allow_lambdas(keras: Any) -> None:
    """Let this thread deserialise layers with functions: they are the user's and have already run."""
    if hasattr(keras, "config") and hasattr(keras.config, "enable_unsafe_deserialization"):
        keras.config.enable_unsafe_deserialization()


def own_names(model: Any) -> Dict[str, Any]:
    """The user's classes and functions, by their names in a configuration."""
    given = [*flat(raw_compile(model) or {}), *optimizers_of(getattr(model, "optimizer", None))]
    functions = {item.__name__: item for item in given if inspect.isfunction(item)}
    kinds = [type(item) for item in (model, *layers_of(model), *given)]
    named = {kind.__name__: kind for kind in kinds if is_own_class(kind)}
    return {**functions, **named}


def flat(value: Any) -> Iterator[Any]:
    """The parts of nested lists, tuples and dictionaries, except None."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from flat(part)
    elif value is not None:
        yield value


_ADVICE = "pass a function that builds and compiles the model"


def renew(value: Any) -> Any:
    """The arguments of ``compile``, with new metrics.

    Raises:
        CopyError: a metric cannot be made again.
    """
    if isinstance(value, dict):
        return {name: renew(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [renew(part) for part in value]
    if any(base.__name__ == "Metric" for base in type(value).__mro__):
        return _made_again(value, "metric", {})
    return value


def renew_optimizer(optimizer: Any) -> Any:
    """A new optimizer with the same settings.

    Raises:
        CopyError: its class does not report all of them.
    """
    if optimizer is None or isinstance(optimizer, str):
        return optimizer
    rate = getattr(optimizer, "_learning_rate", None)
    # Schedules and functions have no state, and may not be found by name.
    kept = {"learning_rate": rate} if callable(rate) and not hasattr(rate, "assign") else {}
    return _made_again(optimizer, "optimizer", kept)


def _made_again(one: Any, what: str, kept: Any) -> Any:
    kind = type(one)
    try:
        config = {**one.get_config(), **kept}
        made = kind.from_config(dict(config))
    except Exception as error:
        raise CopyError(f"the {what} {kind.__name__} cannot be copied ({describe(error)}): {_ADVICE}") from error
    if is_own_class(kind):
        lost = [name for name in arguments_of(kind) if name not in config]
        if lost:
            listed = " and ".join(lost)
            reason = f"get_config() of the {what} {kind.__name__} does not return {listed}"
            raise CopyError(f"{reason}, so it cannot be copied: {_ADVICE}")
        for name in arguments_of(kind):
            value, theirs = getattr(one, name, None), getattr(made, name, None)
            if is_plain(value) and theirs != value:
                reason = f"attribute {name} of the {what} {kind.__name__} is {value!r}, and {theirs!r} in a copy"
                raise CopyError(f"{reason}: {_ADVICE}")
    return made
