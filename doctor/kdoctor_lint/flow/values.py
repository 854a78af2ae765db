"""What a name may stand for, as far as a script tells without being run."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from enum import Enum


class Place(Enum):
    """Where something is made: variables belong to the strategy whose scope they are made in."""

    INSIDE = "inside"
    OUTSIDE = "outside"
    UNSURE = "unsure"


class Value:
    """Anything. What is not known is :data:`UNKNOWN`, and no rule speaks about it."""

    __slots__ = ()


UNKNOWN = Value()
NONE = Value()


class External(Value):
    """A name of another module, spelt out: ``keras.layers.Dense``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name


class Text(Value):
    """A string that stands in the script."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value


class Truth(Value):
    """True or False."""

    __slots__ = ("value",)

    def __init__(self, *, value: bool) -> None:
        self.value = value


NO_NAMES: frozenset[str] = frozenset()


class Number(Value):
    """A number of which something is known."""

    __slots__ = ("names", "scaled", "value")

    def __init__(self, value: float | None, names: frozenset[str] = NO_NAMES, *, scaled: bool = False) -> None:
        self.value = value
        """None if it depends on the machine."""
        self.names = names
        """The names that it bore on its way, and those of its factors."""
        self.scaled = scaled
        """Whether the number of replicas is a factor."""


class Many(Value):
    """A list or a tuple that is written out."""

    __slots__ = ("items",)

    def __init__(self, items: Sequence[Value]) -> None:
        self.items = tuple(items)


class Counted(Value):
    """``range(n)``, or a list of texts made from it, such as ``[f"/gpu:{i}" for i in range(n)]``."""

    __slots__ = ("count", "text")

    def __init__(self, count: Number, text: str = "") -> None:
        self.count = count
        self.text = text


class Class(Value):
    """A class of the script."""

    __slots__ = ("bases", "members", "node")

    def __init__(self, node: ast.ClassDef, bases: Sequence[Value], members: dict[str, Value]) -> None:
        self.node = node
        self.bases = tuple(bases)
        self.members = members

    def member(self, name: str) -> Value | None:
        """What the class, or a base of it in the script, defines under a name."""
        if name in self.members:
            return self.members[name]
        for base in self.bases:
            found = base.member(name) if isinstance(base, Class) and base is not self else None
            if found is not None:
                return found
        return None

    def external_bases(self) -> list[str]:
        """Names of the other modules' classes that it derives from, however indirectly."""
        names: list[str] = []
        for base in self.bases:
            if isinstance(base, External):
                names.append(base.name)
            elif isinstance(base, Class) and base is not self:
                names += base.external_bases()
        return names


class Object(Value):
    """An instance, of which the attributes that the script sets are known."""

    __slots__ = ("attributes", "cls")

    def __init__(self, cls: Class | None = None) -> None:
        self.cls = cls
        self.attributes: dict[str, Value] = {}


class Strategy(Value):
    """A ``tf.distribute`` strategy that the script makes."""

    __slots__ = ("devices", "escaped", "kinds", "node")

    def __init__(self, kinds: frozenset[str], node: ast.AST, devices: Value = UNKNOWN) -> None:
        self.kinds = kinds
        """Names of the classes that it may be of."""
        self.node = node
        self.devices = devices
        self.escaped = False
        """Whether it went where this file does not show what is done with it."""


class Scope(Value):
    """``strategy.scope()``, before it is entered."""

    __slots__ = ("certain", "strategy")

    def __init__(self, strategy: Strategy | None, *, certain: bool = True) -> None:
        self.strategy = strategy
        self.certain = certain


class Made(Object):
    """Something with variables, and where they were made."""

    __slots__ = ("node", "place", "strategy")

    def __init__(self, node: ast.AST, place: Place, strategy: Strategy | None, cls: Class | None = None) -> None:
        super().__init__(cls)
        self.node = node
        self.place = place
        self.strategy = strategy
        """The strategy of the scope, if it was made inside one."""


class Model(Made):
    """A Keras model."""

    __slots__ = ("loaded",)

    def __init__(
        self,
        node: ast.AST,
        place: Place,
        strategy: Strategy | None,
        cls: Class | None = None,
        *,
        loaded: bool = False,
    ) -> None:
        super().__init__(node, place, strategy, cls)
        self.loaded = loaded
        """Whether it came from a file."""


class Layer(Made):
    """A Keras layer; it makes its variables when it is first called."""

    __slots__ = ("weightless",)

    def __init__(
        self,
        node: ast.AST,
        place: Place,
        strategy: Strategy | None,
        cls: Class | None = None,
        *,
        weightless: bool = False,
    ) -> None:
        super().__init__(node, place, strategy, cls)
        self.weightless = weightless
        """Whether it surely has nothing that is trained."""


class Tensor(Made):
    """A symbolic output of a layer; the place is where that layer's variables were made."""

    __slots__ = ()


class Optimizer(Made):
    """A Keras optimizer."""

    __slots__ = ("rate",)

    def __init__(
        self, node: ast.AST, place: Place, strategy: Strategy | None, cls: Class | None = None, rate: Value = UNKNOWN
    ) -> None:
        super().__init__(node, place, strategy, cls)
        self.rate = rate
        """The learning rate, if it was given."""


class Metric(Made):
    """A Keras metric object."""

    __slots__ = ()


class Callback(Value):
    """A Keras callback of another module."""

    __slots__ = ("name", "node", "path")

    def __init__(self, name: str, node: ast.AST, path: Value) -> None:
        self.name = name
        self.node = node
        self.path = path


class Dataset(Value):
    """A ``tf.data`` pipeline, as far as the script shows it."""

    __slots__ = ("batch", "drops", "node", "prefetched", "repeated", "source_shown", "truncated")

    def __init__(self, *, source_shown: bool) -> None:
        self.source_shown = source_shown
        """Whether the script shows it from its source on."""
        self.batch: Value | None = None
        """The size that was given to ``batch``."""
        self.node: ast.AST | None = None
        """The call of ``batch``."""
        self.drops = False
        """Whether ``batch`` drops the remainder, or may."""
        self.prefetched = False
        """Whether it was prefetched after it was batched, or may have been."""
        self.repeated = False
        """Whether it was repeated before it was batched."""
        self.truncated = False
        """Whether whole batches were taken from it."""

    def copy(self) -> Dataset:
        """A pipeline that goes on from this one."""
        other = Dataset(source_shown=self.source_shown)
        other.batch, other.node, other.drops = self.batch, self.node, self.drops
        other.prefetched, other.repeated, other.truncated = self.prefetched, self.repeated, self.truncated
        return other


class Method(Value):
    """A method of something that the script did not define."""

    __slots__ = ("name", "receiver")

    def __init__(self, receiver: Value, name: str) -> None:
        self.receiver = receiver
        self.name = name
