"""Steps through a script as Python would, on what its names may refer to. Nothing of the script is run."""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager

from kdoctor_lint.flow import values as val
from kdoctor_lint.flow.environment import Env, Function
from kdoctor_lint.flow.joining import join
from kdoctor_lint.flow.texts import given
from kdoctor_lint.flow.trace import Late, Trace, home_of
from kdoctor_lint.flow.values import UNKNOWN, Value

Neighbours = Callable[..., ast.Module | None]
"""Finds a module of the same tree by its number of leading dots, its name, and the module that imports it."""

_MAX_DEPTH = 24  # Nested calls that are followed
_MAX_FOLLOWED = 6  # How often one function is followed with different arguments

Evaluator = Callable[["Interpreter", ast.AST, Env], Value]
Executor = Callable[["Interpreter", ast.AST, Env], bool | None]
"""Returns True if code after the statement is unreachable."""


class Interpreter:
    """The state of the analysis. Events are written to the trace."""

    def __init__(self, evaluators: Mapping[type, Evaluator], executors: Mapping[type, Executor]) -> None:
        self._evaluators = evaluators
        self._executors = executors
        self.trace = Trace()
        self.neighbours: Neighbours = lambda *_, **__: None  # Finds modules of the same tree
        self.modules: dict[int, Mapping[str, Value]] = {}  # The names of modules that were read, by ids of their trees
        self.site: ast.AST | None = None  # The call in the script that led to code of another module
        self.place = val.Place.OUTSIDE
        self.strategy: val.Strategy | None = None  # The strategy of the innermost scope
        self.in_replica = False  # Whether this code runs once on every replica
        self.in_graph = False  # Whether this code is traced by ``tf.function``
        self.defaults: dict[str, Value] = {}  # The default values of options of the command line, if known
        self.options: dict[str, Value] = {}  # Options that the script itself sets
        self.graphs: set[int] = set()  # The ids of the nodes of functions that ``tf.function`` traces
        self.alone = False  # Whether no other program starts this code, as that of a notebook
        self.decorated: set[int] = set()  # The ids of the nodes of functions with a decorator of another module
        self.entered: list[val.Strategy] = []  # The strategies of all scopes that were entered
        self.feeding: val.Strategy | None = None  # The strategy whose data the function around this code makes
        self.exchanged: set[Value] = set()  # What an unknown function got, and may have returned something else for
        self.trained: set[str] = set()  # The code of the objects whose ``fit`` or ``compile`` is called
        self.loop: ast.AST | None = None  # The innermost loop around this code
        self.conditional = 0  # Depth of branches and loops around this statement
        self.replaced: set[str] = set()  # Modules that the script puts into ``sys.modules``
        self.names_set: Callable[[], AbstractSet[str]] = frozenset
        """Names of attributes and methods that the script defines."""
        self.mentioned: Callable[[], AbstractSet[str] | None] = lambda: None  # By the code of a program
        self.checks: dict[int, list[Value]] = {}  # Every object whose attribute is read at a node
        self.path: tuple[int, ...] = ()  # The branches around this statement, and around the calls that lead to it
        self.chief_only = 0  # Depth of conditions that test which worker this is
        self.guarded = 0  # Depth of code that tests for a version
        self.left_out = self.idle = 0  # Depth of branches that are not taken. ``idle`` is also that in calls from them
        self.catching = 0  # Depth of code that catches errors
        self._returned: list[Value | None] = []
        self.running: list[Function] = []  # The functions around this code
        self._followed: dict[int, dict[tuple[object, ...], tuple[Sequence[Value], Value]]] = {}
        self._functions: dict[int, Function] = {}
        self.receivers: dict[int, val.Object] = {}
        """The ``self`` of the methods of a class before it is instantiated, by the id of its node."""
        self._unseen: list[val.Made] | None = None
        """While a function without a visible call is read: the objects with variables created in it so far."""

    def read_module(self, module: ast.Module, site: ast.AST) -> Mapping[str, Value]:
        """The names of another module. What it does when it is imported is not reported."""
        if id(module) not in self.modules:
            self.trace.sites[id(module)] = site
            other = Interpreter(self._evaluators, self._executors)
            other.neighbours, other.modules = self.neighbours, self.modules
            other.graphs, other.decorated = self.graphs, self.decorated
            env = Env()
            env.home = module
            names = self.modules[id(module)] = env.names
            other.execute(module.body, env)
            names.update(env.names)  # after a branch, they are in another dictionary
            self.trace.legacy = self.trace.legacy or other.trace.legacy
            for strategy in other.trace.strategies:
                strategy.escaped = True
                self.trace.strategies.append(strategy)
        return self.modules[id(module)]

    @contextmanager
    def calling(self, function: Function, node: ast.AST) -> Iterator[None]:
        """While a function is followed that may be in another module."""
        before, home = self.site, home_of(node)
        where = node if home is None else self.trace.sites.get(id(home))
        self.site = None if function.env.home is None else self.site or where
        if self.site is not None:
            self.trace.sites.setdefault(id(home_of(function.node)), self.site)
        try:
            yield
        finally:
            self.site = before

    def evaluate(self, node: ast.AST, env: Env) -> Value:
        """The value of an expression."""
        evaluator = self._evaluators.get(node.__class__)
        return UNKNOWN if evaluator is None else evaluator(self, node, env)

    def evaluate_all(self, nodes: Iterable[ast.AST], env: Env) -> list[Value]:
        """The values of several expressions."""
        return [self.evaluate(node, env) for node in nodes]

    def execute(self, body: Sequence[ast.stmt], env: Env) -> bool:
        """Step through statements. True if code after them is unreachable."""
        for statement in body:
            executor = self._executors.get(statement.__class__)
            if executor is not None and executor(self, statement, env):
                return True
        return False

    @property
    def tests_release(self) -> bool:
        """Whether this code tests for a version, or catches the error of a missing name."""
        return bool(self.guarded or self.catching)

    @contextmanager
    def scoped(self, place: val.Place, strategy: val.Strategy | None, *, in_replica: bool = False) -> Iterator[None]:
        """Inside a ``with`` that enters a scope, or may."""
        before = self.place, self.strategy, self.in_replica
        self.place, self.strategy, self.in_replica = place, strategy, in_replica or self.in_replica
        try:
            yield
        finally:
            self.place, self.strategy, self.in_replica = before

    def add_strategy(self, strategy: val.Strategy) -> None:
        """A strategy is created. Scripts do not create one inside another's scope, so this code is outside."""
        strategy.path = self.path
        self.trace.strategies += [] if self.left_out else [strategy]
        if self._unseen is not None and self.place is val.Place.UNSURE:
            self.place = val.Place.OUTSIDE
            for made in self._unseen:
                made.place = val.Place.OUTSIDE if made.place is val.Place.UNSURE else made.place
            self._unseen = None

    def after(self, kinds: AbstractSet[str] | None = None) -> bool:
        """Whether a strategy of one of the kinds was certainly created before."""
        found = (one for one in self.trace.strategies if kinds is None or one.kinds <= kinds)
        return any(self.path[: len(one.path)] == one.path for one in found)

    def set_distribution(self, node: ast.AST) -> Value:
        """Keras gets a distribution. Models that are certainly built before do not."""
        what = "keras.distribution.set_distribution"
        again = self.conditional or any(late.what == what for late in self.trace.late)
        made = self.trace.models if self._unseen is None else self._unseen
        built = [] if again else [model for model in made if isinstance(model, val.Model) and not model.lazy]
        self.trace.late.append(Late(node, what, len(self.trace.fitted), built))
        return UNKNOWN

    def add(self, made: val.M) -> val.M:
        """An object with variables is created."""
        if self._unseen is not None:
            self._unseen.append(made)
        return made

    def use(self, made: val.Made) -> None:
        """An object with variables is used under the control of the current strategy."""
        self.trace.used.append((made, self.strategy))

    def define(self, function: Function) -> Function:
        """A function is defined. It is read at the end if no call of it is seen."""
        self._functions.setdefault(id(function.node), function)
        return function

    def give_back(self, value: Value) -> None:
        """``return``."""
        if self._returned and not self.left_out:
            before = self._returned[-1]
            self._returned[-1] = value if before is None else join(before, value)

    def follow(
        self, function: Function, args: Sequence[Value], keywords: Mapping[str, Value], *, spread: bool = False
    ) -> Value:
        """What a call returns. The receiver is not in ``args``. With ``spread``, there are further arguments."""
        node = function.node
        known = self._followed.setdefault(id(node), {})
        given = ([function.receiver] if function.receiver else []) + list(args)
        key = (
            self.place, id(self.strategy), self.in_replica, self.in_graph, self.chief_only > 0, self.idle > 0,
            id(function.env), spread, *map(_key, given), *((name, _key(value)) for name, value in keywords.items()),
        )  # fmt: skip
        if key in known:
            return known[key][1]
        again = any(one.node is node and one.env is function.env for one in self.running)
        if again or len(self.running) >= _MAX_DEPTH or len(known) >= _MAX_FOLLOWED:
            # Not followed any further: it might create models in the current scope.
            self.trace.unclear = self.trace.unclear or self.place is not val.Place.OUTSIDE
            return UNKNOWN
        self.running.append(function)
        strategies = len(self.trace.strategies)
        try:
            result = self._run(function, self._bind(function, given, keywords, spread=spread))
        finally:
            self.running.pop()
        cached = bool(getattr(node, "decorator_list", ()))
        if isinstance(result, val.Strategy) and result in self.trace.strategies[strategies:] and not cached:
            key = (*key, len(known))  # the next call creates another one
        # The arguments are kept, so that their ids in the key stay unique.
        known[key] = ([*given, *keywords.values(), *([self.strategy] if self.strategy else [])], result)
        return result

    def run_unseen(self) -> None:
        """Read the functions without a visible call, which may be called from anywhere."""
        self.alone = False
        while waiting := [function for function in self._functions.values() if self._is_waiting(function)]:
            parts = (part for function in waiting for part in ast.walk(function.node))
            mentioned = {getattr(part, "id", getattr(part, "attr", None)) for part in parts} - {"__init__"}
            # Those first that no other function mentions: they show how the others are called.
            for function in sorted(waiting, key=lambda one: getattr(one.node, "name", "") in mentioned):
                if id(function.node) not in self._followed:
                    self._unseen = []
                    function.env.forget_rebound()
                    self.path = (id(function),)
                    with self.scoped(val.Place.UNSURE, None):
                        self.follow(function, [], {}, spread=True)
                    self.path = ()
                    self._unseen = None

    def _is_waiting(self, function: Function) -> bool:
        """Whether a function was not read, and something may call it: other modules call methods of their classes."""
        node = function.node
        if id(node) in self._followed:
            return False
        mentioned = self.mentioned() if self.trace.strategies else None
        if isinstance(node, ast.Lambda) or mentioned is None or node.name in mentioned or home_of(node) is not None:
            return True
        base = getattr(function.receiver, "cls", None)
        return bool(base and base.all_bases()) or node.name.startswith("__") or id(node) in self.decorated

    def _run(self, function: Function, env: Env) -> Value:
        node = function.node
        self._returned.append(None)
        before = self.conditional, self.chief_only, self.in_graph, self.catching, self.left_out
        self.conditional = self.catching = self.left_out = 0
        self.in_graph = self.in_graph or id(node) in self.graphs
        try:
            if isinstance(node, ast.Lambda):
                self.give_back(self.evaluate(node.body, env))
            else:
                self.execute(node.body, env)
        finally:
            returned = self._returned.pop()
            self.conditional, self.chief_only, self.in_graph, self.catching, self.left_out = before
        return val.NONE if returned is None else returned

    def _bind(self, function: Function, args: Sequence[Value], keywords: Mapping[str, Value], *, spread: bool) -> Env:
        env = Env(function.env)
        declared = function.node.args
        positional = [*declared.posonlyargs, *declared.args]
        required = [None] * (len(positional) - len(declared.defaults))
        parameters = [*positional, *declared.kwonlyargs]
        defaults = [*required, *declared.defaults, *declared.kw_defaults]
        passed = {parameter.arg: value for parameter, value in zip(positional, args, strict=False)}
        for parameter, default in zip(parameters, defaults, strict=True):
            name = parameter.arg
            value = passed.get(name) or keywords.get(name)
            if value is None:
                decorated = id(function.node) in self.decorated  # which passes on what the call leaves out
                hidden = given(name, home=id(function.node) if spread else 0) if spread or decorated else UNKNOWN
                value = hidden if default is None else self.evaluate(default, function.env)
                value = value if isinstance(value, val.Definition | val.Partial) or not spread else hidden
            env.names[name] = value
        names = {parameter.arg for parameter in parameters}
        if declared.vararg is not None:
            env.names[declared.vararg.arg] = UNKNOWN if spread else val.Many(args[len(positional) :])
        if declared.kwarg is not None:
            others = {name: value for name, value in keywords.items() if name not in names}
            env.names[declared.kwarg.arg] = UNKNOWN if spread else val.Table(others)
        return env


def _key(value: Value) -> object:
    if isinstance(value, val.Number):
        return (value.value, value.names, value.counts, value.home)
    if isinstance(value, val.Text):
        return value.value
    return id(value)
