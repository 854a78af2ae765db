"""Ends a program that kdoctor started and can no longer end, because kdoctor itself was killed."""

from __future__ import annotations

import faulthandler

MARGIN_S = 5.0
"""kdoctor ends a child at its deadline; the watchdog acts this much later, so only if kdoctor is gone."""


def arm(deadline_s: float) -> None:
    """End this process, with its Python stacks on stderr, if it still runs well after its deadline.

    It is a C thread, so it works even if a call into C hangs and holds the GIL.
    """
    faulthandler.enable(all_threads=True)
    faulthandler.dump_traceback_later(deadline_s + MARGIN_S, exit=True)
