"""What the rules about scopes share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from kdoctor_lint.flow.trace import Compiled, Fitted, Trace, has_several
from kdoctor_lint.flow.values import Made, Model, Place

MEASURED = "measured with TensorFlow 2.21.0 and Keras 3.15.1 on two logical CPU devices"

M = TypeVar("M", bound=Made)


def stray_models(trace: Trace) -> Iterator[tuple[Model, str]]:
    """Models created outside every scope that a strategy trains or should train, and how a message goes on."""
    seen: set[int] = set()
    for model, use in (*_used_inside(trace), *_never_inside(trace)):
        if id(model.node) not in seen:
            seen.add(id(model.node))
            yield model, use


def used_inside(trace: Trace, kind: type[M]) -> Iterator[M]:
    """Objects created outside and used by a step that runs on every replica."""
    for made, strategy in trace.used:
        if isinstance(made, kind) and made.place is Place.OUTSIDE and has_several(strategy):
            yield made


def compiled_inside(trace: Trace) -> Iterator[Compiled]:
    """Each ``compile`` in the scope of a strategy with several replicas, unless the model was created outside.

    In that case the model is the finding, and moving it fixes the rest.
    """
    for event in trace.compiled:
        outside = event.model is not None and event.model.place is Place.OUTSIDE
        if event.place is Place.INSIDE and has_several(event.strategy) and not outside:
            yield event


def _used_inside(trace: Trace) -> Iterator[tuple[Model, str]]:
    events: list[Compiled | Fitted] = [*trace.compiled, *trace.fitted]
    for event in events:
        model = event.model
        if model is None or model.place is not Place.OUTSIDE:
            continue
        if event.place is Place.INSIDE and has_several(event.strategy):
            yield model, f"but {'compiled' if isinstance(event, Compiled) else 'trained'} inside it"
    for model in used_inside(trace, Model):
        yield model, "but used inside it"


def _never_inside(trace: Trace) -> Iterator[tuple[Model, str]]:
    """Models trained although no model of the script is created in a scope, so the strategy has no effect."""
    events: list[Compiled | Fitted] = [*trace.compiled, *trace.fitted]
    if (
        trace.strategies
        and not trace.unclear
        and all(has_several(strategy) and not strategy.escaped for strategy in trace.strategies)
        and all(item.place is Place.OUTSIDE for item in (*trace.models, *events))
    ):
        for event in trace.fitted:
            if event.model is not None:
                yield event.model, "and trains without the strategy"
