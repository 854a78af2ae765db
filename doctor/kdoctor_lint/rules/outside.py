"""What the rules about scopes share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from kdoctor_lint.flow.trace import Compiled, Fitted, Trace, has_several
from kdoctor_lint.flow.values import Made, Model, Place

MEASURED = "measured with TensorFlow 2.21.0 and Keras 3.15.1 on two logical CPU devices"

M = TypeVar("M", bound=Made)


def stray_models(trace: Trace) -> Iterator[tuple[Model, str]]:
    """Models that were made outside every scope though a strategy trains them or was meant to; and how it shows."""
    told: set[int] = set()
    for model, use in (*_used_inside(trace), *_never_inside(trace)):
        if id(model.node) not in told:
            told.add(id(model.node))
            yield model, use


def used_inside(trace: Trace, kind: type[M]) -> Iterator[M]:
    """What was made outside and is used by a step that runs on every replica."""
    for used in trace.used:
        if isinstance(used.made, kind) and used.made.place is Place.OUTSIDE and has_several(used.strategy):
            yield used.made


def compiled_inside(trace: Trace) -> Iterator[Compiled]:
    """Every ``compile`` inside the scope of a strategy with several replicas, of a model that was not made outside.

    Where the model itself is outside, that is the finding: what else is wrong there moves with it.
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
            yield model, f"but it is {'compiled' if isinstance(event, Compiled) else 'trained'} inside"
    for used in used_inside(trace, Model):
        yield used, "but it is used inside"


def _never_inside(trace: Trace) -> Iterator[tuple[Model, str]]:
    """A strategy is made, no model is ever made in a scope, and yet one is trained: the strategy has no effect."""
    if not trace.strategies or trace.unclear:
        return
    if not all(has_several(strategy) and not strategy.escaped for strategy in trace.strategies):
        return
    if any(model.place is not Place.OUTSIDE for model in trace.models):
        return
    events: list[Compiled | Fitted] = [*trace.compiled, *trace.fitted]
    if any(event.place is not Place.OUTSIDE for event in events):
        return
    for event in trace.fitted:
        if event.model is not None:
            yield event.model, "so the strategy has no part in its training"
