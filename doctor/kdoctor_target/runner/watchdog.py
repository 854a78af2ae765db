"""A last resort for programs that kdoctor started and can no longer end, because it was killed itself."""

from __future__ import annotations

import faulthandler

MARGIN_S = 5.0
"""kdoctor ends a child at its deadline; the watchdog barks this much later, so only where kdoctor is gone."""


def arm(deadline_s: float) -> None:
    """End this process, with its Python stacks on stderr, if it still runs well after its deadline.

    The watch is a thread of the C library: it also works while a call into C hangs and holds Python's lock.
    """
    faulthandler.enable(all_threads=True)
    faulthandler.dump_traceback_later(deadline_s + MARGIN_S, exit=True)
