"""What a script does, as far as the rules need it: events in the order in which they happen."""

import ast
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from kdoctor_lint.edits import Fix
from kdoctor_lint.flow import values as val
from kdoctor_lint.flow.values import Value
from kdoctor_lint.names import SEVERAL_REPLICAS, SOME
from kdoctor_lint.removed import Removed


class Compiled(NamedTuple):
    """``model.compile(...)``."""

    node: ast.AST
    model: val.Model | None
    place: val.Place
    strategy: val.Strategy | None  # The strategy of the scope, if it is inside one
    optimizer: val.Optimizer | None
    metrics: list[val.Metric]
    jit: bool  # Whether it has ``jit_compile=True``
    steps: ast.AST | None = None  # The value of ``steps_per_execution``, if it is certainly more than one
    mixes: bool = False  # Whether the optimizer certainly creates variables for the model, and not in a scope
    other: bool = False  # Whether it may be the one of several models that is outside the scope
    scalar_loss: str = ""  # The loss, if it certainly returns one number for the whole batch, as code

    @property
    def home(self) -> val.Strategy | None:
        """The strategy that trains the model: its own, or that of the scope around this call."""
        if self.other and self.place is val.Place.OUTSIDE:
            return None
        if self.model is not None and self.model.place is val.Place.INSIDE:
            return self.model.strategy
        return self.strategy if self.place is val.Place.INSIDE else None


class Fitted(NamedTuple):
    """``model.fit(...)``."""

    node: ast.AST
    model: val.Model | None
    place: val.Place
    strategy: val.Strategy | None
    data: Value
    batch_size: Value
    compiled: Compiled | None  # The last ``compile`` of the same model before it
    steps: bool  # Whether ``steps_per_epoch`` limits the epoch

    @property
    def home(self) -> val.Strategy | None:
        """The strategy that certainly trains: the model's, or that of the scope around an unknown model."""
        if self.model is not None:
            return self.model.strategy if self.model.place is val.Place.INSIDE else None
        return self.strategy if self.place is val.Place.INSIDE else None


class Named(NamedTuple):
    """A place in the code with the full name used there, such as ``keras.layers.Dense``."""

    node: ast.AST
    name: str


class Gone(NamedTuple):
    """Something is used that newer releases no longer have."""

    node: ast.AST
    removed: Removed
    fix: Fix | None = None
    certain: Callable[[], bool] = lambda: True
    """Whether the whole script shows that it is of TensorFlow or Keras, and not of a class of the same names."""


class Saved(NamedTuple):
    """Something is written to a path that is the same in every process."""

    node: ast.AST
    what: str
    path: str
    strategy: val.Strategy | None = None  # The strategy that certainly trains what is saved


class Late(NamedTuple):
    """TensorFlow is configured after a strategy was created."""

    node: ast.AST
    what: str  # The environment variable, or the function of TensorFlow
    before: int = 0  # The number of scopes that were entered before, or of models that were trained
    models: Sequence[val.Model] = ()  # Models that were built before


@dataclass
class Trace:
    """Everything that the rules may know about one script or notebook."""

    legacy: bool = False  # Whether it uses Keras 2 (tf_keras)
    strategies: list[val.Strategy] = field(default_factory=list)
    models: list[val.Model] = field(default_factory=list)
    compiled: list[Compiled] = field(default_factory=list)
    fitted: list[Fitted] = field(default_factory=list)
    evaluated: list[Compiled | None] = field(default_factory=list)  # The last ``compile`` of models before ``evaluate``
    on_batch: list[tuple[ast.AST, str, val.Model]] = field(default_factory=list)
    """Calls of ``predict_on_batch`` and its relatives."""
    distributed: list[tuple[val.Strategy, val.Dataset]] = field(default_factory=list)
    """Calls of ``strategy.experimental_distribute_dataset(dataset)``."""
    used: list[tuple[val.Made, val.Strategy | None]] = field(default_factory=list)
    """Objects with variables, used under the control of a strategy."""
    batch_normalized: bool = False  # Whether a BatchNormalization layer is certainly trained, and not synchronized
    normalized_application: bool = False  # Whether a model of ``keras.applications`` has BatchNormalization layers
    trains: bool = False  # Whether a model is trained by Keras, or called in training mode
    applying: set[int] = field(default_factory=set)  # Ids of functions that apply gradients
    freezes: bool = False  # Whether layers may be frozen, so that their BatchNormalization may not be trained
    environment: dict[str, Value] = field(default_factory=dict)  # Variables that the script sets in any case
    variables: list[tuple[ast.AST, str, Value]] = field(default_factory=list)
    """Where environment variables are set, and to what."""
    averaged: list[tuple[val.Averaged, val.Strategy | None]] = field(default_factory=list)
    """Means over the batch of one replica whose gradients are applied."""
    reduced: list[tuple[ast.AST, val.Strategy]] = field(default_factory=list)  # Calls that average divided losses
    clipped: list[tuple[ast.AST, val.Strategy | None]] = field(default_factory=list)
    """Calls that clip the gradients of one replica, which are then applied."""
    stepped: list[tuple[ast.AST, val.Strategy | None, val.Place, AbstractSet[int]]] = field(default_factory=list)
    """Calls that apply gradients, but not in a replica: the strategy whose scope they need, whether they are in a
    scope, and the ids of the functions around them."""
    handed: set[int] = field(default_factory=set)  # Ids of functions that ``run`` of what may be a strategy gets
    steps: list[tuple[ast.AST, str, val.Number]] = field(default_factory=list)
    """Arguments that count training steps, with their names."""
    built_late: list[tuple[val.Optimizer, val.Strategy | None]] = field(default_factory=list)
    """Optimizers whose variables are created by a step that runs on every replica, in a graph."""
    random: list[val.Layer] = field(default_factory=list)  # Layers of models that draw random numbers in training
    unseeded: list[tuple[ast.AST, str, val.Strategy | None]] = field(default_factory=list)
    """Calls of ``keras.random`` without a seed in a layer, and the strategy of its scope, or in a replica."""
    gone: list[Gone] = field(default_factory=list)
    targets: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The releases of TensorFlow and Keras that the script is for. Packages not listed are at their newest."""
    sites: dict[int, ast.AST] = field(default_factory=dict)
    """Where the script uses a definition of another module, by the id of the node of the definition."""
    saved: list[Saved] = field(default_factory=list)
    late: list[Late] = field(default_factory=list)
    scopes: int = 0  # The number of scopes that are entered
    meshes: list[tuple[ast.AST, val.Number]] = field(default_factory=list)  # Of all devices, and how many they need
    unsharded: list[tuple[ast.AST, val.Strategy]] = field(default_factory=list)
    """Functions that make a dataset for each worker without looking at which worker it is."""
    undistributed: list[tuple[ast.AST, val.Strategy]] = field(default_factory=list)
    """Loops over a dataset whose batches are passed to every replica."""
    restarted: list[tuple[ast.AST, val.Strategy]] = field(default_factory=list)
    """Calls that take the first batch of a new iterator in each step."""
    added: list[tuple[ast.AST, bool, val.Strategy | None]] = field(default_factory=list)
    """Where layers add to the loss, whether it is what a loss object returns, and the strategy of the layer."""
    synchronized: list[val.Strategy | None] = field(default_factory=list)
    """The strategies of BatchNormalization layers that use the statistics of all replicas."""
    calls: list[Named] = field(default_factory=list)  # Calls of functions and classes of other modules
    imports: list[Named] = field(default_factory=list)  # Names in ``from ... import``.
    callbacks: set[str] = field(default_factory=set)  # Class names of the Keras callbacks
    counts: dict[str, ast.AST] = field(default_factory=dict)  # Names that a number literal is assigned to, and where
    verified: set[str] = field(default_factory=set)  # Names compared with something that depends on the machine
    scaled: set[tuple[str, int]] = field(default_factory=set)
    """Keys of numbers that are multiplied by the number of replicas."""
    divided: set[tuple[str, int]] = field(default_factory=set)
    """Keys of numbers that are divided by the number of replicas, so they are global sizes."""
    unclear: bool = False  # Whether code outside the file might create a model in a scope

    def compiled_of(self, model: val.Model | None) -> Compiled | None:
        """The last ``compile`` of a model."""
        return next((item for item in reversed(self.compiled) if model and item.model is model), None)


def home_of(node: ast.AST) -> ast.AST | None:
    """The definition of another module that a node is in, or None for a node of the script."""
    home: ast.AST | None = node.__dict__.get("home")
    return home


def has_several(strategy: val.Strategy | None) -> bool:
    """Whether a strategy may have several replicas, or is one that the file does not show."""
    return strategy is not None and bool(strategy.kinds & (SEVERAL_REPLICAS | SOME))


def literal(value: Value | None) -> val.Number | None:
    """The number, if the script contains it and it does not depend on the machine."""
    return value if isinstance(value, val.Number) and value.value is not None and not value.scaled else None
