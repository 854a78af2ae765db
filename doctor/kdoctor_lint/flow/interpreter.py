"""Walks through a script as Python would, on what its names may stand for; nothing of it is run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TypeVar

from kdoctor_lint.flow.environment import Env, Function
from kdoctor_lint.flow.joining import join
from kdoctor_lint.flow.trace import Trace
from kdoctor_lint.flow.values import NONE, UNKNOWN, Class, Many, Model, Number, Object, Place, Strategy, Text, Value

_DEEPEST = 24
"""Calls within calls that are followed."""
_MOST_FOLLOWED = 6
"""Times that one function is followed with different arguments."""

N = TypeVar("N", bound=ast.AST)
Evaluator = Callable[["Machine", ast.AST, Env], Value]
Executor = Callable[["Machine", ast.AST, Env], bool]
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


class Machine:
    """The state of the walk. What is met is written to the trace."""

    def __init__(self, evaluators: Mapping[type, Evaluator], executors: Mapping[type, Executor]) -> None:
        self._evaluators = evaluators
        self._executors = executors
        self.trace = Trace()
        self.place = Place.OUTSIDE
        self.strategy: Strategy | None = None
        """The strategy of the innermost scope."""
        self.in_replica = False
        """Whether this runs once on every replica."""
        self.conditional = 0
        """Depth of branches and loops around this statement."""
        self.chief_only = 0
        """Depth of conditions that ask which worker this is."""
        self._returned: list[Value | None] = []
        self._active: set[int] = set()
        self._followed: dict[int, dict[tuple[object, ...], tuple[Sequence[Value], Value]]] = {}
        self._functions: dict[int, Function] = {}
        self._selves: dict[int, Object] = {}
        self._entered_blind: list[Model] | None = None
        """While a function is read of which no call is seen: the models that were made in it so far."""

    def evaluate(self, node: ast.AST, env: Env) -> Value:
        """What an expression stands for."""
        evaluator = self._evaluators.get(node.__class__)
        return UNKNOWN if evaluator is None else evaluator(self, node, env)

    def execute(self, body: Sequence[ast.stmt], env: Env) -> bool:
        """Go through statements; True if what follows them is never reached."""
        executors = self._executors
        for statement in body:
            executor = executors.get(statement.__class__)
            if executor is not None and executor(self, statement, env):
                return True
        return False

    @contextmanager
    def scoped(self, place: Place, strategy: Strategy | None, *, in_replica: bool = False) -> Iterator[None]:
        """Inside a ``with`` that enters a scope, or may."""
        before = self.place, self.strategy, self.in_replica
        self.place, self.strategy, self.in_replica = place, strategy, in_replica or self.in_replica
        try:
            yield
        finally:
            self.place, self.strategy, self.in_replica = before

    def add_strategy(self, strategy: Strategy) -> None:
        """A strategy is made. Nobody makes one inside another's scope, so this tells where a blind entry is."""
        self.trace.strategies.append(strategy)
        if self._entered_blind is not None and self.place is Place.UNSURE:
            self.place = Place.OUTSIDE
            for model in self._entered_blind:
                model.place = Place.OUTSIDE if model.place is Place.UNSURE else model.place
            self._entered_blind = None

    def add_model(self, model: Model) -> None:
        """A model is made."""
        self.trace.models.append(model)
        if self._entered_blind is not None:
            self._entered_blind.append(model)

    def define(self, function: Function) -> Function:
        """A function is defined: if no call of it is seen, it is read at the end."""
        self._functions.setdefault(id(function.node), function)
        return function

    def give_back(self, value: Value) -> None:
        """``return``."""
        if self._returned:
            before = self._returned[-1]
            self._returned[-1] = value if before is None else join(before, value)

    def follow(
        self, function: Function, args: Sequence[Value], keywords: Mapping[str, Value], *, spread: bool = False
    ) -> Value:
        """Read a function of the script as it is called; what it returns.

        Args:
            function: what is called.
            args: the positional arguments, without the receiver.
            keywords: the arguments by name.
            spread: whether there are further arguments that are not known (``*args``, ``**kwargs``).
        """
        node = function.node
        known = self._followed.setdefault(id(node), {})
        given = ([function.receiver] if function.receiver else []) + list(args)
        key = (
            self.place, id(self.strategy), self.in_replica, self.chief_only > 0, id(function.env), spread,
            *map(_mark, given), *((name, _mark(value)) for name, value in keywords.items()),
        )  # fmt: skip
        if key in known:
            return known[key][1]
        if id(node) in self._active or len(self._active) >= _DEEPEST or len(known) >= _MOST_FOLLOWED:
            # Not followed any further: it might make models where it is called.
            self.trace.unclear = self.trace.unclear or self.place is not Place.OUTSIDE
            return UNKNOWN
        self._active.add(id(node))
        try:
            result = self._body(function, self._bind(function, given, keywords, spread=spread))
        finally:
            self._active.discard(id(node))
        # The arguments are kept, so that no other value can come to bear the id of one of them.
        known[key] = ([*given, *keywords.values(), *([self.strategy] if self.strategy else [])], result)
        return result

    def read_the_rest(self) -> None:
        """Read the functions of which no call was seen; where they are called from is not known."""
        while True:
            waiting = [function for key, function in self._functions.items() if key not in self._followed]
            if not waiting:
                return
            for function in waiting:
                if id(function.node) not in self._followed:
                    self._read_blind(function)

    def self_of(self, cls: Class, made: Callable[[], Object]) -> Object:
        """The instance on which the methods of a class are read of which none is made."""
        if id(cls.node) not in self._selves:
            self._selves[id(cls.node)] = made()
        return self._selves[id(cls.node)]

    def _read_blind(self, function: Function) -> None:
        self._entered_blind = []
        with self.scoped(Place.UNSURE, None):
            result = self.follow(function, [], {}, spread=True)
        self._entered_blind = None
        let_go(result)

    def _body(self, function: Function, env: Env) -> Value:
        node = function.node
        if isinstance(node, ast.Lambda):
            return self.evaluate(node.body, env)
        self._returned.append(None)
        conditional, self.conditional = self.conditional, 0
        chief_only = self.chief_only
        try:
            self.execute(node.body, env)
        finally:
            returned = self._returned.pop()
            self.conditional, self.chief_only = conditional, chief_only
        return NONE if returned is None else returned

    def _bind(self, function: Function, args: Sequence[Value], keywords: Mapping[str, Value], *, spread: bool) -> Env:
        env = Env(function.env)
        names = env.names
        declared = function.node.args
        positional = [*declared.posonlyargs, *declared.args]
        defaults = [None] * (len(positional) - len(declared.defaults)) + list(declared.defaults)
        for number, (parameter, default) in enumerate(zip(positional, defaults, strict=True)):
            name = parameter.arg
            if number < len(args):
                names[name] = args[number]
            elif name in keywords:
                names[name] = keywords[name]
            else:
                names[name] = self._default(default, function.env, spread=spread)
        for parameter, default in zip(declared.kwonlyargs, declared.kw_defaults, strict=True):
            given = keywords.get(parameter.arg)
            names[parameter.arg] = given or self._default(default, function.env, spread=spread)
        for rest in (declared.vararg, declared.kwarg):
            if rest is not None:
                names[rest.arg] = UNKNOWN
        return env

    def _default(self, default: ast.expr | None, env: Env, *, spread: bool) -> Value:
        return UNKNOWN if default is None or spread else self.evaluate(default, env)


def let_go(value: Value) -> None:
    """A value goes where this file does not show what is done with it."""
    if isinstance(value, Strategy):
        value.escaped = True
    elif isinstance(value, Many):
        for item in value.items:
            let_go(item)
    elif type(value) is Object:
        for held in list(value.attributes.values()):
            if isinstance(held, Strategy):
                held.escaped = True


def _mark(value: Value) -> object:
    if isinstance(value, Number):
        return (value.value, value.names, value.scaled)
    if isinstance(value, Text):
        return value.value
    return id(value)
