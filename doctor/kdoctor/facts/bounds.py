"""What a value of a fact can be, written at its field. :mod:`kdoctor.facts.plausible` applies it."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, get_type_hints

MOST = 2.0**60
"""No count, size or time is larger."""


@dataclass(frozen=True)
class Within:
    """The bounds of a number. Fields without them are counts and sizes: 0 to ``MOST``."""

    least: float = 0
    most: float = MOST


ABOVE_ZERO = math.ulp(0)
"""The least value of what is more than 0 on every working device."""
POSITIVE = Within(ABOVE_ZERO)
SIGNED = Within(-MOST)
PERCENT = Within(0, 100)


@dataclass(frozen=True)
class AtMost:
    """A number that is never above another field of its record. Of two that contradict this, neither was read."""

    field: str


class Identity:
    """What identifies a record within its list. Of different records with the same one, it was not read."""


SHARED = "several have the same one"
"""The error of an identity of several records."""


class OfHbm:
    """What every GPU with HBM reports, unless it is virtual or partitioned: "not supported" is not true of them."""


class OfFailure:
    """What only a process that did not finish has."""


class MayBeEmpty:
    """A text whose emptiness says something: an exception may have no message, but there was one."""


Reason = Annotated[str | None, MayBeEmpty()]
"""A reason or a message. Other texts that are empty were not read."""


@cache
def marked(kind: type[Any], mark: type[Any]) -> tuple[str, ...]:
    """The fields of a record that are declared with such a mark."""
    hints = get_type_hints(kind, include_extras=True).items()
    return tuple(
        name for name, hint in hints if any(isinstance(one, mark) for one in getattr(hint, "__metadata__", ()))
    )
