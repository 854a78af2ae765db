"""What a script does, as far as the rules ask: events in the order in which they were met."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from kdoctor_lint.flow.values import Dataset, Made, Metric, Model, Number, Optimizer, Place, Strategy, Value
from kdoctor_lint.names import SEVERAL_REPLICAS


@dataclass(frozen=True, kw_only=True)
class Compiled:
    """``model.compile(...)``."""

    node: ast.Call
    model: Model | None
    place: Place
    strategy: Strategy | None
    """The strategy of the scope, if it is inside one."""
    optimizer: Optimizer | None
    metrics: tuple[Metric, ...]
    jit: bool
    """Whether ``jit_compile=True`` stands there."""


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """``model.fit(...)``."""

    node: ast.Call
    model: Model | None
    place: Place
    strategy: Strategy | None
    data: Value
    batch_size: Value | None
    compiled: Compiled | None
    """The last ``compile`` of the same model before it."""
    steps: bool
    """Whether ``steps_per_epoch`` bounds the epoch."""

    @property
    def home(self) -> Strategy | None:
        """The strategy that surely trains: that of the model, or that of the scope around an unknown model."""
        if self.model is not None:
            return self.model.strategy if self.model.place is Place.INSIDE else None
        return self.strategy if self.place is Place.INSIDE else None


@dataclass(frozen=True, kw_only=True)
class Distributed:
    """``strategy.experimental_distribute_dataset(dataset)``."""

    node: ast.Call
    strategy: Strategy
    data: Dataset


@dataclass(frozen=True, kw_only=True)
class Used:
    """Something with variables, used where a strategy is in charge."""

    node: ast.AST
    made: Made
    strategy: Strategy | None


@dataclass(frozen=True, kw_only=True)
class Normalized:
    """A ``BatchNormalization`` layer."""

    node: ast.AST
    guarded: bool
    """Whether it is synchronized or frozen, or may be."""


@dataclass(frozen=True, kw_only=True)
class Saved:
    """Something is written to a path that is the same in every process."""

    node: ast.AST
    what: str
    path: str
    strategy: Strategy | None


@dataclass(frozen=True, kw_only=True)
class Called:
    """An external function that a rule knows."""

    node: ast.AST
    name: str


@dataclass
class Trace:
    """Everything that the rules may know about one script or notebook."""

    legacy: bool = False
    """Whether it chooses Keras 2 (tf_keras)."""
    strategies: list[Strategy] = field(default_factory=list)
    models: list[Model] = field(default_factory=list)
    compiled: list[Compiled] = field(default_factory=list)
    fitted: list[Fitted] = field(default_factory=list)
    distributed: list[Distributed] = field(default_factory=list)
    used: list[Used] = field(default_factory=list)
    normalized: list[Normalized] = field(default_factory=list)
    saved: list[Saved] = field(default_factory=list)
    calls: list[Called] = field(default_factory=list)
    imports: list[Called] = field(default_factory=list)
    callbacks: set[str] = field(default_factory=set)
    """Names of the Keras callbacks that are made."""
    counts: dict[str, ast.AST] = field(default_factory=dict)
    """Names that a literal number is bound to, and where."""
    verified: set[str] = field(default_factory=set)
    """Names that are compared with something that the machine says."""
    scaled: set[str] = field(default_factory=set)
    """Names of numbers that are multiplied by the number of replicas."""
    divided: set[str] = field(default_factory=set)
    """Names of numbers that are divided by it, so that they are for all replicas together."""
    unclear: bool = False
    """Whether something happens that could put a model into a scope unseen."""

    @property
    def several_replicas(self) -> bool:
        """Whether a strategy is made that may have several replicas."""
        return any(strategy.kinds & SEVERAL_REPLICAS for strategy in self.strategies)


def has_several(strategy: Strategy | None) -> bool:
    """Whether a strategy is known, and may have several replicas."""
    return strategy is not None and bool(strategy.kinds & SEVERAL_REPLICAS)


def literal(value: Value | None) -> Number | None:
    """The number, if it stands in the script and does not depend on the machine."""
    return value if isinstance(value, Number) and value.value is not None and not value.scaled else None
