"""What a value of a fact can be, written at its field. :mod:`kdoctor.facts.plausible` applies it."""

import math
from dataclasses import dataclass
from typing import Annotated

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


class MayBeEmpty:
    """A text whose emptiness says something: an exception may have no message, but there was one."""


Reason = Annotated[str | None, MayBeEmpty()]
"""A reason or a message. Other texts that are empty were not read."""
