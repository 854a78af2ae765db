"""The checks about trainings on other backends, one per file: ``<family>/<slug>.py``."""

from __future__ import annotations

import sys

from kdoctor.check import Check
from kdoctor.plugins.collected import collect


def checks() -> tuple[Check, ...]:
    """All of them."""
    return collect(sys.modules[__name__])
