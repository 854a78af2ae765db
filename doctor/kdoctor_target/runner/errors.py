"""An exception of the examined environment, as facts."""

from __future__ import annotations

from typing import Any, Dict

MESSAGE_CHARACTERS = 2000


def describe_error(error: BaseException) -> Dict[str, Any]:
    """Class and message, by the names of ``SmokeCase``'s fields."""
    return {"error_type": type(error).__name__, "error_message": str(error)[:MESSAGE_CHARACTERS]}
