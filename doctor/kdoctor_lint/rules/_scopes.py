"""What the rules about scopes share."""

from collections.abc import Iterator
from typing import TypeVar

from kdoctor_lint.flow.trace import Compiled, Fitted, Trace, has_several
from kdoctor_lint.flow.values import Made, Model, Place, Strategy

M = TypeVar("M", bound=Made)


def stray_models(trace: Trace) -> Iterator[tuple[Model, str]]:
    """Models created outside every scope that a strategy trains or should train, and how a message goes on."""
    events: list[Compiled | Fitted] = [*trace.compiled, *trace.fitted]
    for event in events:
        inside = event.place is Place.INSIDE and has_several(event.strategy)
        if event.model is not None and event.model.place is Place.OUTSIDE and inside:
            yield event.model, f"but {'compiled' if isinstance(event, Compiled) else 'trained'} inside it"
    for model in used_inside(trace, Model):
        yield model, "but used inside it"
    unaffected = all(item.place is Place.OUTSIDE for item in (*trace.models, *events))
    unused = all(has_several(strategy) and not strategy.escaped for strategy in trace.strategies)
    if trace.strategies and unaffected and unused and not trace.unclear:
        for event in trace.fitted:
            if event.model is not None and event.model.place is Place.OUTSIDE:
                yield event.model, "and trained without the strategy"


def differ(one: Strategy | None, other: Strategy | None) -> bool:
    """Whether two strategies with several replicas are certainly not the same object."""
    known = one is not None and other is not None and not one.joined and not other.joined
    return known and one is not other and has_several(one) and has_several(other)


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
