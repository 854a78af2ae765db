"""What holds after branches: of a name that stands for one thing or for another."""

from __future__ import annotations

from kdoctor_lint.flow.values import (
    NONE,
    UNKNOWN,
    External,
    Many,
    Model,
    Number,
    Optimizer,
    Place,
    Scope,
    Strategy,
    Text,
    Value,
)


def join(one: Value, other: Value) -> Value:
    """What holds whichever of the two it is."""
    if one is other:
        return one
    if one is NONE or other is NONE:
        rest = other if one is NONE else one
        return rest if isinstance(rest, Strategy | Model | Optimizer) else UNKNOWN
    if isinstance(one, Scope) or isinstance(other, Scope):
        scope = one if isinstance(one, Scope) else other
        both = isinstance(one, Scope) and isinstance(other, Scope)
        return Scope(scope.strategy if isinstance(scope, Scope) else None, certain=both)
    if isinstance(one, Strategy) or isinstance(other, Strategy):
        return _join_strategies(one, other)
    return _join_alike(one, other) if type(one) is type(other) else UNKNOWN


def _join_strategies(one: Value, other: Value) -> Value:
    known = [item for item in (one, other) if isinstance(item, Strategy)]
    kinds = frozenset().union(*(item.kinds for item in known))
    if len(known) == 1:
        kinds |= {"unknown"}
    joined = Strategy(kinds, known[0].node)
    joined.escaped = any(item.escaped for item in known)
    return joined


def _join_alike(one: Value, other: Value) -> Value:
    if isinstance(one, External) and isinstance(other, External):
        return one if one.name == other.name else UNKNOWN
    if isinstance(one, Text) and isinstance(other, Text):
        return one if one.value == other.value else UNKNOWN
    if isinstance(one, Number) and isinstance(other, Number):
        same = one.value == other.value and one.scaled == other.scaled
        return Number(one.value, one.names | other.names, scaled=one.scaled) if same else UNKNOWN
    if isinstance(one, Many) and isinstance(other, Many) and len(one.items) == len(other.items):
        return Many([join(*pair) for pair in zip(one.items, other.items, strict=True)])
    if isinstance(one, Model) and isinstance(other, Model):
        place = one.place if one.place is other.place else Place.UNSURE
        return Model(one.node, place, one.strategy, loaded=one.loaded and other.loaded)
    return UNKNOWN
