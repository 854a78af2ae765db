"""Copies of the job's model, so that the model itself is never trained."""

from __future__ import annotations

import inspect
import re
from typing import Any, Callable, Dict, Iterator, List, Optional

from kdoctor_target.job.model import is_compiled, layers_of, normalisations, random_layers, raw_compile
from kdoctor_target.job.parts import describe, is_model, keras_of

COMPARING_RATE = 0.01
_UNSET = object()
_UNREGISTERED = r"(?:Could not locate \w+ '|object of type `|identifier: .*'registered_name': ')(\w+)['`]"
"""Names that Keras asks to register."""


class CopyError(Exception):
    """The model cannot be copied; the message says why and what to do."""


class Copier:
    """Makes copies of one model, with the function that made it or from its configuration."""

    def __init__(self, model: Any, builder: Optional[Callable[[], Any]]) -> None:
        self._model = model
        self._builder = builder
        self._weights: Optional[List[Any]] = model.get_weights() if model.built and model.weights else None

    def copy(self, batch: Any, *, own_optimizer: bool, one_device: bool) -> Any:
        """A compiled copy with the model's weights, made in the current scope.

        Args:
            batch: an element of the data, to build a copy that is not built.
            own_optimizer: keep the job's optimizer; if false, use SGD, whose steps are proportional to the gradient.
            one_device: turn XLA off, because Keras turns it off for several replicas.

        Raises:
            CopyError: the model cannot be copied.
        """
        made = self._make()
        kept = {id(layer) for layer in layers_of(self._model)}
        shared = [layer.name for layer in layers_of(made) if id(layer) in kept]
        if shared:
            raise CopyError(
                f"a copy would share layers with the model ({', '.join(shared)}), and training it would change them: "
                "pass a function that builds the whole model"
            )
        if not own_optimizer:
            _make_comparable(made)
        self._compile(made, own_optimizer=own_optimizer, one_device=one_device)
        if not (made.built and made.weights):
            _build(made, batch)
        if self._weights is None:
            self._weights = made.get_weights()
        made.set_weights(self._weights)
        return made

    def make_comparable(self, trained: Any) -> Any:
        """The same copy with the model's weights and SGD; a new copy if the class overrides ``compile``.

        Raises:
            CopyError: the model cannot be copied.
        """
        if raw_compile(self._model) is None:
            return self.copy(None, own_optimizer=False, one_device=False)
        _make_comparable(trained)
        self._compile(trained, own_optimizer=False, one_device=False)
        trained.set_weights(self._weights)
        return trained

    def _make(self) -> Any:
        if self._builder is not None:
            made = self._builder()
            if is_model(made) and made is not self._model:
                return made
        keras = keras_of(self._model)
        try:
            _allow_lambdas(keras)
            with keras.utils.custom_object_scope(_own_names(self._model)):
                return _clone(keras, self._model)
        except CopyError:
            raise
        except Exception as error:
            raise CopyError(_why_not(error)) from error

    def _compile(self, made: Any, *, own_optimizer: bool, one_device: bool) -> None:
        kept = raw_compile(self._model)
        if kept is None:
            if not is_compiled(made):
                raise CopyError("its class overrides compile(): pass a function that builds and compiles the model")
            return
        keras = keras_of(self._model)
        arguments = {name: _renew(value) for name, value in kept.items()}
        if own_optimizer:
            arguments["optimizer"] = _renew_optimizer(kept["optimizer"])
        else:
            arguments["optimizer"] = keras.optimizers.SGD(COMPARING_RATE)
        arguments["steps_per_execution"] = 1
        if one_device or arguments.get("jit_compile") is not True:
            arguments["jit_compile"] = False
        made.compile(**arguments)


def _clone(keras: Any, model: Any) -> Any:
    if hasattr(model, "inputs") and (getattr(model, "_functional", None) or model.inputs):
        return keras.models.clone_model(model, clone_function=lambda layer: _again(keras, layer))
    if type(model).__name__ == "Sequential":
        return keras.Sequential([_again(keras, layer) for layer in model.layers], name=model.name)
    return _again(keras, model)


def _again(keras: Any, one: Any) -> Any:
    """Another layer or model from the configuration of this one.

    Raises:
        CopyError: Keras does not know its arguments.
    """
    kind = type(one)
    if not _states_arguments(keras, kind) and not _keeps_arguments(keras, one):
        made = _from_attributes(one)
        if made is None or not _is_alike(keras, one, made):
            raise CopyError(_missing(one, f"Keras does not keep the arguments of {kind.__name__}"))
        return made
    try:
        config = one.get_config()
    except NotImplementedError as error:
        raise CopyError(_missing(one, f"Keras does not keep the arguments of {kind.__name__}")) from error
    try:
        return kind.from_config(config)
    except Exception as error:
        # Keras stores the arguments of the class; a class without **kwargs takes them only.
        kept = getattr(one, "_auto_config", None)
        if kept is not None and not _states_arguments(keras, kind):
            return kind(**kept.config)
        lacking = [name for name in _arguments(kind, required=True) if name not in config]
        if lacking:
            reason = f"get_config() of {kind.__name__} does not return {' and '.join(lacking)}"
            raise CopyError(_missing(one, reason)) from error
        raise


def _states_arguments(keras: Any, kind: Any) -> bool:
    """Whether the class, or a base class that is not Keras's, defines ``get_config``."""
    owner = next(base for base in kind.__mro__ if "get_config" in vars(base))
    return bool(kind.__module__.split(".")[0] == keras.__name__) or owner.__module__.split(".")[0] != keras.__name__


def _keeps_arguments(keras: Any, one: Any) -> bool:
    """Whether Keras recorded the arguments of this layer or model. Keras 3 keeps the defaults of a model's class."""
    if not isinstance(one, keras.Model) or not _arguments(type(one)):
        return True

    class Probe(keras.Model):  # type: ignore[misc]  # Keras has no types here
        def __init__(self, width: int = 0) -> None:  # noqa: ARG002
            super().__init__()

    kept = getattr(Probe(width=1), "_auto_config", None)
    return kept is not None and kept.config.get("width") == 1


def _from_attributes(one: Any) -> Any:
    """Another model, with the attributes that are named like the arguments of its class; None if that fails."""
    given = {name: getattr(one, name) for name in _arguments(type(one)) if _is_plain(getattr(one, name, _UNSET))}
    try:
        return type(one)(**given)
    except Exception:
        return None


def _is_alike(keras: Any, one: Any, made: Any) -> bool:
    """Whether the layers have equal configurations, and the attributes of the class that are plain equal values."""
    known = set(vars(keras.Model()))
    own = [name for name, value in vars(made).items() if name not in known and name[0] != "_" and _is_plain(value)]
    if any(getattr(one, name, _UNSET) != getattr(made, name) for name in own):
        return False
    try:
        return [_settings(layer) for layer in layers_of(one)] == [_settings(layer) for layer in layers_of(made)]
    except NotImplementedError:
        return False


def _settings(layer: Any) -> Any:
    """The class and configuration of a layer, without names, which Keras numbers."""
    config = layer.get_config()
    return type(layer), {name: value for name, value in config.items() if name not in ("name", "layers")}


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, (bool, int, float, str))


def _arguments(kind: Any, *, required: bool = False) -> List[str]:
    """The arguments of the class that are its own, not Keras's."""
    parameters = list(inspect.signature(kind.__init__).parameters.values())[1:]
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    own = [item for item in parameters if item.kind not in several and item.name not in ("name", "dtype", "trainable")]
    return [item.name for item in own if not required or item.default is item.empty]


def _missing(one: Any, reason: str) -> str:
    """The reason, and the line that the class lacks if its arguments are plain values."""
    names = _arguments(type(one))
    advice = f"{reason}, so it cannot be copied: pass a function that builds the model"
    if not all(_is_plain(getattr(one, name, None)) for name in names):
        return advice
    config = ", ".join(f'"{name}": self.{name}' for name in names)
    inherited = "" if is_model(one) else "**super().get_config(), "
    unset = [f"self.{name} = {name}" for name in names if not hasattr(one, name)]
    also = f" (with {', '.join(unset)} in __init__)" if unset else ""
    return f"{advice}, or add to the class: def get_config(self): return {{{inherited}{config}}}{also}"


def _why_not(error: Exception) -> str:
    unregistered = re.search(_UNREGISTERED, str(error))
    if unregistered:
        name = unregistered[1]
        return (
            f"Keras does not find {name} by its name, so the model cannot be copied: pass a function that builds the "
            f"model, or add above {name}: @keras.saving.register_keras_serializable()"
        )
    return f"the model cannot be copied ({describe(error)}): pass a function that builds it"


def _allow_lambdas(keras: Any) -> None:
    """Let this thread deserialise layers with functions: they are the user's and have already run."""
    if hasattr(keras, "config") and hasattr(keras.config, "enable_unsafe_deserialization"):
        keras.config.enable_unsafe_deserialization()


def _own_names(model: Any) -> Dict[str, Any]:
    """The user's classes and functions, by their names in a configuration."""
    given = list(_flat(raw_compile(model) or {}))
    functions = {item.__name__: item for item in given if inspect.isfunction(item)}
    kinds = [type(item) for item in (model, *layers_of(model), *given)]
    named = {
        kind.__name__: kind for kind in kinds if not kind.__module__.startswith(("keras.", "tf_keras.", "builtins"))
    }
    return {**functions, **named}


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _flat(part)
    elif value is not None:
        yield value


def _renew(value: Any) -> Any:
    """The arguments of ``compile``, with new metrics, because metrics have state."""
    if isinstance(value, dict):
        return {name: _renew(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_renew(part) for part in value]
    if any(base.__name__ == "Metric" for base in type(value).__mro__):
        return type(value).from_config(value.get_config())
    return value


def _renew_optimizer(optimizer: Any) -> Any:
    return optimizer if isinstance(optimizer, str) else type(optimizer).from_config(optimizer.get_config())


def _build(made: Any, batch: Any) -> None:
    inputs = batch[0] if isinstance(batch, tuple) else batch
    try:
        made(inputs)
    except Exception as error:
        if type(made).train_step is keras_of(made).Model.train_step:
            raise  # fit calls the model, too
        raise CopyError(f"it is not built, and calling it with a batch raised {describe(error)}") from error


def _make_comparable(made: Any) -> None:
    """Run layers with random numbers as at inference, and synchronise BatchNormalization.

    Random numbers per replica and moments of a share of the batch are correct, but differ from one device.
    """
    for layer in random_layers(made):
        _still(layer)
    for layer in list(normalisations(made)):
        layer.synchronized = True
        if getattr(layer, "fused", None):
            layer.fused = False  # Keras 2 sets this when the layer is made, and its fused code never synchronises


def _still(layer: Any) -> None:
    call = layer.call

    def at_inference(*arguments: Any, **named: Any) -> Any:
        if "training" in named:
            named["training"] = False
        return call(*arguments, **named)

    object.__setattr__(layer, "call", at_inference)
