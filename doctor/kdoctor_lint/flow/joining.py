"""What is known after branches about a name that may refer to one value or another."""

from kdoctor_lint.flow.values import (
    NONE,
    UNKNOWN,
    External,
    Made,
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
    """What is true of both values."""
    if one is other:
        return one
    if one is NONE or other is NONE:
        rest = other if one is NONE else one
        return rest if isinstance(rest, Strategy | Model | Optimizer) else UNKNOWN
    scopes = [item for item in (one, other) if isinstance(item, Scope)]
    if scopes:
        return Scope(scopes[0].strategy, certain=len(scopes) > 1)
    strategies = [item for item in (one, other) if isinstance(item, Strategy)]
    if strategies:
        kinds = frozenset().union(*(item.kinds for item in strategies))
        kinds |= {"unknown"} if len(strategies) == 1 else frozenset()
        return Strategy(kinds, strategies[0].node, escaped=any(item.escaped for item in strategies))
    return _join_alike(one, other)


def _join_alike(one: Value, other: Value) -> Value:
    if isinstance(one, External) and isinstance(other, External):
        return one if one.name == other.name else UNKNOWN
    if isinstance(one, Text) and isinstance(other, Text):
        return one if one.value == other.value else UNKNOWN
    if isinstance(one, Number) and isinstance(other, Number):
        same = one.value == other.value and one.scaled == other.scaled
        product = one.product or other.product
        return Number(one.value, one.names | other.names, scaled=one.scaled, product=product) if same else UNKNOWN
    if isinstance(one, Many) and isinstance(other, Many) and len(one.items) == len(other.items):
        return Many([join(*pair) for pair in zip(one.items, other.items, strict=True)])
    return _join_made(one, other)


def _join_made(one: Value, other: Value) -> Value:
    place = (
        one.place if isinstance(one, Made) and isinstance(other, Made) and one.place is other.place else Place.UNSURE
    )
    if isinstance(one, Model) and isinstance(other, Model):
        return Model(one.node, place, one.strategy, loaded=one.loaded and other.loaded)
    if isinstance(one, Optimizer) and isinstance(other, Optimizer):
        algorithm = one.algorithm if one.algorithm == other.algorithm else ""
        slots, built = one.slots and other.slots, one.built or other.built
        first = one if one.clipping or not other.clipping else other
        joined = Optimizer(first.node, place, first.strategy, algorithm=algorithm, slots=slots, built=built)
        joined.clipping = first.clipping
        return joined
    return UNKNOWN
