"""Delays Ctrl-C while the report of a run is written."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from kdoctor.run.log import warn


@contextmanager
def delayed_interrupt() -> Iterator[None]:
    """Finish this block at the first Ctrl-C or SIGTERM, then raise KeyboardInterrupt; end at once at the second.

    The facts of minutes would otherwise be lost in the last second of a run.
    """
    pending = False

    def delay(number: int, frame: FrameType | None) -> None:
        nonlocal pending
        if pending:
            signal.default_int_handler(number, frame)
        pending = True
        warn("kdoctor: interrupted; writing the report (Ctrl-C again ends at once)")

    kinds = (signal.SIGINT, signal.SIGTERM)
    before = {kind: signal.signal(kind, delay) for kind in kinds}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
        if pending:
            raise KeyboardInterrupt
