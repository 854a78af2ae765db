"""What a name may refer to, as far as a script shows without being run."""

import ast
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, TypeVar

from kdoctor_lint.names import COUNT, WORKER


class Place(Enum):
    """Where an object is created. Variables belong to the strategy whose scope they are created in."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    UNSURE = "unsure"


class Value:
    """Any value. An unknown one is :data:`UNKNOWN`, and no rule reports it."""

    __slots__ = ()


UNKNOWN = Value()
NONE = Value()
ALL_DEVICES = Value()  # The list of all devices of all workers
LOCAL_DEVICES = Value()  # The list of devices of one worker
TOTAL = Value()  # A sum over all axes, or the number of examples of a replica
SHAPE = Value()  # The shape of a batch of a replica
SCALED = Value()  # A loss that is divided by the number of replicas
DISTRIBUTED = Value()  # A dataset that is distributed


@dataclass(eq=False, slots=True)
class External(Value):
    """A name of another module, in full: ``keras.layers.Dense``."""

    name: str


@dataclass(eq=False, slots=True)
class Checkpoint(External):
    """``tf.train.Checkpoint``, which has what it saves as attributes."""

    saved: Mapping[str, Value]


@dataclass(eq=False, slots=True)
class Module(Value):
    """A module of the same tree."""

    name: str
    members: Mapping[str, Value]

    def member(self, name: str) -> Value:
        """What the module defines under a name, or a name of which nothing is known."""
        return self.members.get(name) or External(f"{self.name}.{name}")


@dataclass(eq=False, slots=True)
class Text(Value):
    """A string literal."""

    value: str


@dataclass(eq=False, slots=True)
class Truth(Value):
    """True or False."""

    value: bool


@dataclass(eq=False, slots=True)
class Number(Value):
    """A number about which something is known."""

    value: float | None  # None if it depends on the machine
    names: frozenset[str] = frozenset()  # The names it was assigned to, and those of its factors
    counts: frozenset[str] = field(default=frozenset(), kw_only=True)
    """What is a factor of it: the number of workers, that of the devices of a worker, or both."""
    product: bool = field(default=False, kw_only=True)  # Whether it is computed by a multiplication with a named number
    per: frozenset[str] = field(default=frozenset(), kw_only=True)
    """The names of what it was divided by, such as the batch size that a number of steps is for."""
    given: bool = field(default=False, kw_only=True)  # Whether it is an option or an environment variable as it is
    home: int = field(default=0, kw_only=True)  # The id of the function whose unknown argument it is

    @property
    def growth(self) -> frozenset[str]:
        """What it counts, also if only a name says so."""
        names = [found for name in self.names if (found := COUNT.fullmatch(name))] if self.value is None else []
        kinds = {"workers" if WORKER.search(found[0]) else "devices" for found in names}
        return self.counts | kinds

    @property
    def scaled(self) -> bool:
        """Whether it grows with the number of replicas."""
        return bool(self.growth)

    @property
    def keys(self) -> frozenset[tuple[str, int]]:
        """Its names in the script. An argument has the same name as others of other functions."""
        return frozenset((name, self.home) for name in self.names)


WORKERS, DEVICES = frozenset({"workers"}), frozenset({"devices"})  # Whose product is the number of replicas
TWICE = frozenset({"twice"})  # Multiplied by the same count twice


@dataclass(eq=False, slots=True)
class Averaged(Value):
    """A loss of one replica that is not divided by the number of replicas, or what is computed from it."""

    node: ast.AST
    what: str = ""  # What it is, if it is not the mean over the batch of the replica
    size: Number | None = None  # The number that the sum over the batch is divided by


class PerExample(Averaged):
    """The loss of each example of a replica."""


@dataclass(eq=False, slots=True)
class Gradients(Value):
    """The gradients of one replica, before they are summed over the replicas."""

    loss: Averaged | None = None
    clipped: ast.AST | None = None  # The call that clips them


@dataclass(eq=False, slots=True)
class ScalarLoss(Value):
    """A loss of Keras that returns one number for the whole batch."""

    name: str


@dataclass(eq=False, slots=True)
class Many(Value):
    """A list or a tuple with known items."""

    items: Sequence[Value]
    whole: bool = True  # Whether it certainly has these items, in this order, and no others


@dataclass(eq=False, slots=True)
class Table(Value):
    """A dictionary whose keys are strings."""

    items: dict[str, Value]
    whole: bool = True  # Whether it has no other items

    def forget(self) -> None:
        """Anything may be in it from now on."""
        self.items.clear()
        self.whole = False


def parts(value: Value | None) -> Collection[Value | None]:
    """The items of a list, a tuple or a dictionary; otherwise the value."""
    return value.items.values() if isinstance(value, Table) else value.items if isinstance(value, Many) else [value]


@dataclass(eq=False, slots=True)
class Given(Value):
    """A string or a number from elsewhere: the command line, the environment, a configuration, or an unknown caller."""

    shown: str = ""  # It as code, or with such parts in braces. Empty if it may differ between workers.
    end: str = ""  # What it certainly ends with
    names: frozenset[str] = frozenset()  # Its names, unless something was added to it
    home: int = 0  # The id of the function whose argument it is


class Flags(Value):
    """The arguments of the command line, or a configuration that is read from a file."""


@dataclass(eq=False, slots=True)
class LossObject(Value):
    """A loss of Keras."""

    each: bool = False  # Whether it returns the loss of each example


@dataclass(eq=False, slots=True)
class Counted(Value):
    """``range(n)``, or a list of strings made from it, such as ``[f"/gpu:{i}" for i in range(n)]``."""

    count: Number
    text: str = ""


class Definition(Value):
    """A function or a class of the script."""


@dataclass(eq=False, slots=True)
class Choice(Value):
    """One of several functions, classes, and objects of classes of the script."""

    options: Sequence[Any]


@dataclass(eq=False, slots=True)
class Class(Definition):
    """A class of the script."""

    node: ast.ClassDef
    bases: Sequence[Value]  # UNKNOWN is among them if a decorator or a metaclass may add anything
    members: dict[str, Value]

    def member(self, name: str) -> Value | None:
        """The attribute that the class, or a base class in the script, defines."""
        return self.members[name] if name in self.members else self.inherited(name)

    def inherited(self, name: str) -> Value | None:
        """The attribute that a base class in the script defines."""
        found = (base.member(name) for base in self.bases if isinstance(base, Class) and base is not self)
        return next((value for value in found if value is not None), None)

    def all_bases(self) -> list[Value]:
        """Its direct and indirect base classes that the script does not define."""
        bases: list[Value] = []
        for base in self.bases:
            bases += [base] if not isinstance(base, Class) else [] if base is self else base.all_bases()
        return bases

    def external_bases(self) -> list[str]:
        """Names of its direct and indirect base classes from other modules."""
        return [base.name for base in self.all_bases() if isinstance(base, External)]


@dataclass(eq=False, slots=True)
class Object(Value):
    """An instance, with the attributes that the script sets."""

    cls: Class | None = field(default=None, kw_only=True)
    site: ast.AST | None = field(default=None, kw_only=True)  # The call that creates it
    attributes: dict[str, Value] = field(default_factory=dict, kw_only=True)


@dataclass(eq=False, slots=True)
class Super(Value):
    """``super()``: an instance as one of the base classes of a class."""

    cls: Class
    owner: Object


@dataclass(eq=False, slots=True)
class Strategy(Value):
    """A ``tf.distribute`` strategy that the script creates."""

    kinds: frozenset[str]  # Names of the classes that it may be an instance of
    node: ast.AST
    devices: Value = UNKNOWN
    escaped: bool = False  # Whether a scope of it may be entered that the file does not show
    path: tuple[int, ...] = ()  # The branches that it is created in
    joined: bool = False  # Whether it may be one of several


class Distribution(Value):
    """``keras.distribution.DataParallel`` or ``ModelParallel``."""


@dataclass(eq=False, slots=True)
class Scope(Value):
    """``strategy.scope()``, before it is entered."""

    strategy: Strategy | None
    certain: bool = True


@dataclass(eq=False, slots=True)
class Made(Object):
    """An object with variables, and where they were created."""

    node: ast.AST
    place: Place
    strategy: Strategy | None  # The strategy of the scope, if it was created inside one


M = TypeVar("M", bound=Made)


@dataclass(eq=False, slots=True)
class Foreign(Made):
    """What code outside the file returns in a scope, perhaps a model, or for a batch size, perhaps data."""

    batch: Number | None = None  # The size of batches that it got
    model: Any = None  # The model that it is, if it is compiled


@dataclass(eq=False, slots=True)
class Model(Made):
    """A Keras model."""

    loaded: bool = False  # Whether it was loaded from a file
    lazy: bool = False  # Whether it has no variables yet: they are created when it is first called
    plain: bool = False  # Whether its layers are all known, and none is a BatchNormalization
    strings: ast.AST | None = None  # An input of strings


@dataclass(eq=False, slots=True)
class Layer(Made):
    """A Keras layer. It creates its variables when it is first called."""

    weightless: bool = False  # Whether it certainly has no trainable weights
    random: str = ""  # The name of its class, if it draws random numbers in training
    normalizes: bool = False  # Whether it is a BatchNormalization, or may be


@dataclass(eq=False, slots=True)
class Tensor(Made):
    """A symbolic output of a layer. The place is where that layer's variables were created."""

    strings: bool = False


@dataclass(eq=False, slots=True)
class Optimizer(Made):
    """A Keras optimizer."""

    rate: Value = UNKNOWN  # The learning rate, if given
    algorithm: str = ""  # The name of its class, if it is not a class of the script
    clipping: tuple[str, ...] = ()  # The options that make it clip gradients
    overwrites: bool = False  # Whether it writes moving averages to the weights every few steps
    slots: bool = False
    """Whether it certainly has variables for each variable of the model, which it creates when it is built."""
    built: bool = False  # Whether it is built, or may be


@dataclass(eq=False, slots=True)
class Metric(Made):
    """A Keras metric object."""


@dataclass(eq=False, slots=True)
class Batch(Value):
    """A batch of a dataset, or a part of it."""

    node: ast.AST  # The loop over the dataset, or the call that takes the batch
    whole: bool = True  # Whether it is not distributed
    first: bool = False  # Whether each step takes the first batch of a new iterator


@dataclass(eq=False, slots=True)
class Batches(Value):
    """An iterator over batches."""

    whole: bool = True  # Whether they are not distributed
    loop: ast.AST | None = None  # The loop each of whose steps makes a new one


@dataclass(eq=False, slots=True)
class Dataset(Value):
    """A ``tf.data`` pipeline, as far as the script shows it."""

    in_memory: bool = field(default=False, kw_only=True)
    """Whether its source is in memory and nothing transforms the elements."""
    source_shown: bool  # Whether the script shows the whole pipeline, from its source on
    batch: Value | None = None  # The size passed to ``batch``
    node: ast.AST | None = None  # The call of ``batch``
    drops: bool = False  # Whether ``batch`` drops the remainder, or may
    prefetched: bool = False  # Whether it is prefetched after ``batch``, or may be
    repeated: bool = False  # Whether it is repeated before ``batch``
    truncated: bool = False  # Whether whole batches are taken from it
    source: str = ""  # The full name of the function that creates it
    shuffled: bool = False  # Whether it is shuffled, or may be
    sharded: bool = False  # Whether it is sharded by hand, or may be
    policy: str = ""  # The policy of sharding it automatically, if the script sets it
    frozen: ast.AST | None = None  # The call of ``cache`` after ``shuffle``, unless it is shuffled again


@dataclass(eq=False, slots=True)
class Writer(Value):
    """A callback that saves, and what it saves."""

    saved: Any


@dataclass(eq=False, slots=True)
class Partial(Value):
    """``functools.partial``."""

    callee: Value
    args: Sequence[Value]
    keywords: Mapping[str, Value]
    spread: bool


@dataclass(eq=False, slots=True)
class Method(Value):
    """A method of an object that the script does not define."""

    receiver: Value
    name: str


def named(value: Value, name: str) -> Value:
    """A number with a further name."""
    if isinstance(value, Number | Given) and (value.names or isinstance(value, Number)):
        return replace(value, names=value.names | {name})
    return value


def truth_of(value: Value) -> bool | None:
    """What a condition makes of a value, if this is certain."""
    return False if value is NONE else value.value if isinstance(value, Truth) else None


def is_unknown(value: Value) -> bool:
    """Whether a value may be anything, as far as the file shows."""
    return type(value) is Value or isinstance(value, Given | Foreign)
