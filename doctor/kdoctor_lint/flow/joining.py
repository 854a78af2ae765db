"""What is certainly true of a value that is one of several."""

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, TypeVar

from kdoctor_lint.flow import values as val
from kdoctor_lint.flow.values import NONE, UNKNOWN, Value, is_unknown
from kdoctor_lint.names import DEFAULT, Kind, kind_of

_MAX_OPTIONS = 6
_NEEDED = val.Strategy | val.Object | val.Definition | val.Choice
"""What is meant where it may be None: None has nothing that a script can use."""
M = TypeVar("M", bound=val.Made)
_PERHAPS = ("in_memory", "drops", "prefetched", "repeated", "truncated", "shuffled", "sharded")
"""What is true of a dataset if it is in one branch. No rule reports it then."""
_GENERIC = {Kind.OPTIMIZER: "keras.optimizers.Optimizer", Kind.METRIC: "keras.metrics.Metric"}
"""The base class of several classes of a kind."""
_JOINING: set[tuple[int, int]] = set()  # The ids of objects that are being joined, because they may have each other


def join(one: Value, other: Value) -> Value:
    """What is true of both values."""
    if one is other:
        return one
    if _leaves(one, other) or _leaves(other, one):
        kept = other if _leaves(one, other) else one
        return replace(kept, loss=None) if isinstance(kept, val.Gradients) else kept
    scopes = [item for item in (one, other) if isinstance(item, val.Scope)]
    if scopes:
        entered = reduce(join, [item.strategy or UNKNOWN for item in scopes])
        strategy = entered if isinstance(entered, val.Strategy) else None
        return val.Scope(strategy, certain=len(scopes) > 1 and all(item.certain for item in scopes))
    strategies = [item for item in (one, other) if isinstance(item, val.Strategy)]
    if strategies:
        kinds = frozenset().union(*(item.kinds for item in strategies))
        kinds |= {"unknown"} if len(strategies) == 1 else frozenset()
        return val.Strategy(kinds, strategies[0].node, escaped=any(item.escaped for item in strategies), joined=True)
    options = [*_options(one), *_options(other)]
    alike = type(one) is type(other) is val.Object and one.cls is other.cls
    if not alike and len(options) > max(len(_options(one)), len(_options(other))) and len(options) <= _MAX_OPTIONS:
        return val.Choice(options)
    return _join_alike(one, other)


def _leaves(value: Value, other: Value) -> bool:
    """Whether what is true of the other value stays: a loss may start at 0, and gradients may be those of a replica."""
    if isinstance(other, val.Gradients):
        return is_unknown(value)
    starts = isinstance(value, val.Number) and value.value == 0 and isinstance(other, val.Averaged)
    return starts or (value is NONE and isinstance(other, _NEEDED))


def _options(value: Value) -> Sequence[Value]:
    one = isinstance(value, val.Definition) or type(value) is val.Object
    return value.options if isinstance(value, val.Choice) else [value] if one else []


def _join_alike(one: Any, other: Any) -> Value:
    made, foreign = (other, one) if isinstance(one, val.Foreign) else (one, other)
    if isinstance(made, val.Optimizer | val.Model) and isinstance(foreign, val.Foreign):
        place, strategy = _home_of_both(made, foreign)
        return replace(made, place=place, strategy=strategy)  # what the other one is stays open
    joined = _JOINED.get(one.__class__) if one.__class__ is other.__class__ else None
    return UNKNOWN if joined is None else joined(one, other)


def _join_externals(one: val.External, other: val.External) -> Value:
    generic = _GENERIC.get(kind_of(one.name)) if kind_of(one.name) is kind_of(other.name) else None
    return one if one.name == other.name else val.External(generic) if generic else UNKNOWN


def _join_numbers(one: val.Number, other: val.Number) -> Value:
    single = next((number for number in (one, other) if number.value == 1), None)
    if single is not None and (one.scaled or other.scaled):
        return other if one is single else one  # one worker, or one device, is a special case
    same = one.value == other.value and one.counts == other.counts and one.home == other.home
    return replace(one, names=one.names | other.names, product=one.product or other.product) if same else UNKNOWN


def _join_many(one: val.Many, other: val.Many) -> Value:
    alike = len(one.items) == len(other.items) and one.whole and other.whole
    return val.Many([join(*pair) for pair in zip(one.items, other.items, strict=True)]) if alike else UNKNOWN


def _join_datasets(one: val.Dataset, other: val.Dataset) -> Value:
    if one.node is not other.node:
        return UNKNOWN
    policy = one.policy if one.policy == other.policy else "?"
    shown, source = one.source_shown and other.source_shown, one.source if one.source == other.source else ""
    perhaps = {name: getattr(one, name) or getattr(other, name) for name in _PERHAPS}
    frozen = one.frozen if one.frozen is other.frozen else None
    return replace(one, source_shown=shown, source=source, frozen=frozen, policy=policy, **perhaps)


def _join_objects(one: val.Object, other: val.Object) -> Value:
    return val.Object(cls=one.cls, attributes=_attributes(one, other)) if one.cls is other.cls else UNKNOWN


def _attributes(one: val.Object, other: val.Object) -> dict[str, Value]:
    pair, alike = (id(one), id(other)), one.attributes.keys() & other.attributes.keys()
    if pair in _JOINING:
        return {}
    _JOINING.add(pair)
    try:
        return {name: join(one.attributes[name], other.attributes[name]) for name in sorted(alike)}
    finally:
        _JOINING.discard(pair)


def _join_made(one: M, other: M) -> M:
    place, strategy = _home_of_both(one, other)
    either = [one.cls, other.cls] if one.cls and other.cls else []
    cls = one.cls if one.cls is other.cls else val.Class(ast.ClassDef("", [], [], [], []), [*either, UNKNOWN], {})
    shown = other if one.place is val.Place.OUTSIDE and place is val.Place.INSIDE else one
    return one.__class__(shown.node, place, strategy, cls=cls, attributes=_attributes(one, other))


def _join_optimizers(one: val.Optimizer, other: val.Optimizer) -> Value:
    first = max(one, other, key=lambda item: (bool(item.clipping), item.slots))
    second = other if first is one else one
    algorithm = first.algorithm if first.algorithm == second.algorithm or not second.slots else ""
    made = _join_made(first, second)
    built = one.built or other.built
    return replace(made, algorithm=algorithm, slots=first.slots, built=built, clipping=first.clipping)


def _home_of_both(one: val.Made, other: val.Made) -> tuple[val.Place, val.Strategy | None]:
    """Where either of two objects was created. Outside every scope is as in that of the default strategy."""
    strategies = [item.strategy for item in (one, other) if item.strategy is not None]
    if val.Place.UNSURE in {one.place, other.place}:
        return val.Place.UNSURE, None
    if one.place is not other.place:
        strategies.append(val.Strategy(DEFAULT, one.node))
    joined = reduce(join, strategies, NONE)
    return (val.Place.INSIDE, joined) if isinstance(joined, val.Strategy) else (val.Place.OUTSIDE, None)


_JOINED: Mapping[type[Value], Callable[[Any, Any], Value]] = {
    **dict.fromkeys((val.External, val.Checkpoint), _join_externals),
    val.Number: _join_numbers,
    val.Averaged: lambda one, other: UNKNOWN if one.size or other.size else one,
    val.Many: _join_many,
    val.Dataset: _join_datasets,
    **dict.fromkeys((val.Text, val.Truth), lambda one, other: one if one.value == other.value else UNKNOWN),
    val.Gradients: lambda one, other: one if one.clipped else other,
    val.Metric: _join_made,
    val.Foreign: _join_made,
    val.Tensor: _join_made,
    val.Object: _join_objects,
    val.Model: lambda one, other: replace(_join_made(one, other), loaded=one.loaded and other.loaded),
    val.Optimizer: _join_optimizers,
}
"""What is true of two values of a class."""


def item_of(owner: val.Table | val.Many, key: Value) -> Value:
    """The item of a key. An unknown key may be any."""
    if isinstance(owner, val.Table) and isinstance(key, val.Text):
        return val.named(owner.items.get(key.value, UNKNOWN), key.value)
    items = owner.items.values() if isinstance(owner, val.Table) else owner.items
    return reduce(join, items) if items else UNKNOWN
