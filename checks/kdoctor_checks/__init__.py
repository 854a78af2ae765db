"""The built-in checks, one per file: ``<family>/<slug>.py``."""

import sys

from kdoctor.catalog.collect import collect
from kdoctor.check import Check

__all__ = ["checks"]


def checks() -> tuple[Check, ...]:
    """All built-in checks, sorted by family and id.

    Raises:
        CheckDefinitionError: a file is not as ``collect`` describes it.
    """
    return collect(sys.modules[__name__])
