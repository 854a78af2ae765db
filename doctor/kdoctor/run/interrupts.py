"""Signals that end a run, and their delay while its report is written."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from kdoctor.run.log import warn

ENDS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Ctrl-C, a batch system that ends the job, and a terminal that is closed."""


def treat_ends_as_interrupts() -> None:
    """Handle each of these signals as Ctrl-C, so that children end and the report is printed.

    A signal that is ignored stays ignored: so nohup keeps a run alive.
    """
    for kind in ENDS:
        if signal.getsignal(kind) is not signal.SIG_IGN:
            signal.signal(kind, signal.default_int_handler)


@contextmanager
def ends_as_interrupts() -> Iterator[None]:
    """The same for a block, after which the signals are handled as before."""
    before = {kind: signal.getsignal(kind) for kind in ENDS}
    treat_ends_as_interrupts()
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)


@contextmanager
def delayed_interrupt() -> Iterator[None]:
    """Finish this block at the first of these signals, then raise KeyboardInterrupt; end at once at the second.

    The facts of minutes would otherwise be lost in the last second of a run.
    """
    pending = False

    def delay(number: int, frame: FrameType | None) -> None:
        nonlocal pending
        if pending:
            signal.default_int_handler(number, frame)
        pending = True
        warn("kdoctor: interrupted; writing the report (Ctrl-C again ends at once)")

    known = [kind for kind in ENDS if signal.getsignal(kind) is not signal.SIG_IGN]
    before = {kind: signal.signal(kind, delay) for kind in known}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
        if pending:
            raise KeyboardInterrupt
