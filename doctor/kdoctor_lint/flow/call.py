"""A call in the script, and what calls of several kinds do."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from kdoctor_lint.flow import values as val
from kdoctor_lint.flow.environment import Function
from kdoctor_lint.flow.interpreter import Interpreter
from kdoctor_lint.flow.joining import item_of, join
from kdoctor_lint.flow.texts import as_number, as_text, formatted, given
from kdoctor_lint.flow.trace import Saved
from kdoctor_lint.flow.values import UNKNOWN, Value
from kdoctor_lint.names import BATCH


@dataclass(frozen=True)
class Call:
    """A call in the script, with its arguments evaluated."""

    interpreter: Interpreter
    node: ast.Call
    args: list[Value]
    keywords: dict[str, Value]
    spread: bool  # Whether there are further, unknown arguments (``*args``, ``**kwargs``)

    @property
    def site(self) -> ast.AST:
        """The call, or the call in the script that led to it, if it is in another module."""
        return self.interpreter.site or self.node

    @property
    def first(self) -> Value:
        """The first positional argument."""
        return self.args[0] if self.args else UNKNOWN

    def get(self, position: int, *names: str) -> Value | None:
        """The argument at a position or with one of the names."""
        for name in names:
            if name in self.keywords:
                return self.keywords[name]
        return self.args[position] if position < len(self.args) else None

    def create(self, kind: type[val.M], **options: Any) -> val.M:
        """An object with variables, created by this call."""
        return self.interpreter.add(kind(self.site, self.interpreter.place, self.interpreter.strategy, **options))

    def follow(self, function: Function) -> Value:
        """What a function of the script returns for these arguments."""
        with self.interpreter.calling(function, self.node):
            return self.interpreter.follow(function, self.args, self.keywords, spread=self.spread)

    def count_steps(self, names: Iterable[str]) -> None:
        """Arguments that count training steps."""
        given = [(name, self.keywords[name]) for name in names if name in self.keywords]
        steps = [(self.site, name, value) for name, value in given if isinstance(value, val.Number) and value.per]
        self.interpreter.trace.steps += steps

    def build_on(self, parts: Iterable[Value]) -> None:
        """Models become part of one that this call creates or changes."""
        for part in parts if self.interpreter.place is val.Place.INSIDE else ():
            if isinstance(part, val.Model) and part.place is val.Place.OUTSIDE:
                self.interpreter.use(part)

    def draw(self, parts: Iterable[Value]) -> None:
        """Layers become part of a model."""
        self.interpreter.trace.random += [part for part in parts if isinstance(part, val.Layer) and part.random]

    def certain(self, strategy: val.Strategy | None) -> val.Strategy | None:
        """A strategy, unless this code is in a branch that may be for another one of several."""
        return None if strategy is not None and strategy.joined and self.interpreter.path else strategy

    def save(self, path: Value | None, what: str, strategy: val.Strategy | None = None) -> Value:
        """Something is saved to a path known from the script, unless only one worker reaches this call."""
        text = as_text(path) if path is not None else UNKNOWN
        shown = text.value if isinstance(text, val.Text) else text.shown if isinstance(text, val.Given) else ""
        if not shown or self.interpreter.chief_only:
            return UNKNOWN
        saved = Saved(self.site, what, shown, self.certain(strategy))
        self.interpreter.trace.saved.append(saved)
        return val.Writer(saved)


_RETURNED = val.Model | val.Layer | val.Optimizer | val.Metric


def unknown(call: Call, _: object) -> Value:
    """Code outside the file may build an optimizer that it gets, return its argument, and create models in a scope."""
    given = [*call.args, *call.keywords.values()]
    for value in given:
        if isinstance(value, val.Optimizer):
            value.built = True
    strategies: list[Value] = [value for value in given if isinstance(value, val.Strategy)]
    parts = strategies or [value for value in call.args[:1] if isinstance(value, _RETURNED)]
    called = call.node.func
    called_as = getattr(called, "attr", getattr(called, "id", ""))
    if len(parts) == 1 and not called_as[:1].isupper():  # a class returns something new
        call.interpreter.exchanged.add(parts[0])
        return parts[0]  # which it is, if it is used as one
    return sized(call)


def sized(call: Call) -> Value:
    """Something new: perhaps a model in the scope, or data of a batch size that the call gets."""
    tables = [value for value in (*call.args, *call.keywords.values()) if isinstance(value, val.Table)]
    named = [*call.keywords.items(), *(pair for table in tables for pair in table.items.items())]
    batch = next(_batches([*(("", value) for value in call.args), *named]), None)
    return call.create(val.Foreign, batch=batch)


def _batches(arguments: Iterable[tuple[str, Value]]) -> Iterator[val.Number]:
    """The arguments that are sizes of batches, by their names."""
    for name, value in arguments:
        size = as_number(value)
        if isinstance(size, val.Number) and any(map(BATCH.search, (name, *size.names))):
            yield size


def table_method(call: Call, table: val.Table, name: str) -> Value:
    """A method of a dictionary."""
    if name == "get" and call.args:
        found, default = item_of(table, call.first), call.args[1] if call.args[1:] else val.NONE
        unsure = found is UNKNOWN or not isinstance(call.args[0], val.Text)
        return join(found, default) if unsure and default is not val.NONE else found
    other = call.first if call.args else table
    if name == "update" and isinstance(other, val.Table) and not (call.spread or call.interpreter.conditional):
        table.items, table.whole = {**table.items, **other.items, **call.keywords}, table.whole and other.whole
    elif name in {"update", "setdefault", "pop", "clear", "popitem"}:
        table.forget()
    return UNKNOWN


def from_configuration(call: Call) -> Value:
    """``get`` of an unknown table. A default of zero is kept, as that of an option."""
    name, default = call.first, call.get(1, "default")
    if isinstance(name, val.Text) and isinstance(default, val.Number) and default.value == 0:
        call.interpreter.defaults.setdefault(name.value, default)
    return given(f"[{name.value!r}]") if isinstance(name, val.Text) else unknown(call, UNKNOWN)


def list_method(call: Call, many: val.Many, name: str) -> Value:
    """A list changes. In a branch or a loop, it may have the item, or several of its kind."""
    added = call.first.items if name == "extend" and isinstance(call.first, val.Many) else ()
    many.items = [*many.items, *(call.args[-1:] if name in {"append", "insert"} else added)]
    many.whole = many.whole and not call.interpreter.conditional and name == "append"
    return UNKNOWN


def text_method(call: Call, text: val.Text, name: str) -> Value:
    """A method of a string."""
    if name in {"lower", "upper", "strip"} and not call.args:
        return val.Text(getattr(text.value, name)())
    between = [value.value for value in call.args[:1] if isinstance(value, val.Text)]
    if name == "split" and len(between) == len(call.args) and "" not in between and not call.spread:
        return val.Many([val.Text(part) for part in text.value.split(between[0] if between else None)])
    return formatted(text.value, call.args, call.keywords) if name == "format" and not call.spread else UNKNOWN
