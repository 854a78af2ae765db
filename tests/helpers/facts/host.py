"""Builder of the group ``host``."""

from typing import Any

from kdoctor.facts import Host
from kdoctor.testing import healthy


def host(**changes: Any) -> Host:
    """A bare Linux host with half its memory as /dev/shm."""
    return healthy(Host, **changes)
