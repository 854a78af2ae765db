"""Times as documents have them."""

import datetime as dt


def parse_instant(text: str) -> dt.datetime | None:
    """A time as ISO 8601; None if it is not one, or has no time zone."""
    try:
        found = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return found if found.tzinfo else None


def problem_of(text: str) -> str:
    """Why a record cannot be of this time: it is after tomorrow. Empty if it can."""
    found = parse_instant(text)
    if found is None or found <= dt.datetime.now(dt.timezone.utc) + dt.timedelta(days=1):
        return ""
    return f"it was recorded at {text}, which is yet to come: a clock is wrong"
