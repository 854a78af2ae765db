"""Names of distributions."""

import re


def canonical_name(name: str) -> str:
    """The normalised form of a distribution's name (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
