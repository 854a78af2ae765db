"""Copies of the job's model, so that the model itself is never trained."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, Iterator, List, Optional

from kdoctor_target.job.model import is_compiled, layers_of, normalisations, raw_compile
from kdoctor_target.job.parts import describe, is_model, keras_of

COMPARING_RATE = 0.01


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
        except Exception as error:
            raise CopyError(
                f"the model cannot be copied ({describe(error)}): pass a function that builds it"
            ) from error

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
        return keras.models.clone_model(model)
    if type(model).__name__ == "Sequential":
        return keras.Sequential.from_config(model.get_config())
    try:
        return type(model).from_config(model.get_config())
    except Exception:
        # Keras stores the arguments of the class; a class without a name parameter (**kwargs) needs them.
        kept = getattr(model, "_auto_config", None)
        if kept is None:
            raise
        return type(model)(**kept.config)


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
        raise CopyError(f"it is not built, and calling it with a batch raised {describe(error)}") from error


def stochastic(model: Any) -> List[Any]:
    """Layers that draw random numbers during training."""
    return [layer for layer in layers_of(model) if _draws(layer)]


def _draws(layer: Any) -> bool:
    owned = [value for name, value in vars(layer).items() if not name.startswith("_self")]
    return any(type(value).__name__ in ("SeedGenerator", "RandomGenerator") for value in owned)


def _make_comparable(made: Any) -> None:
    """Run layers with random numbers as at inference, and synchronise BatchNormalization.

    Random numbers per replica and moments of a share of the batch are correct, but differ from one device.
    """
    for layer in stochastic(made):
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
