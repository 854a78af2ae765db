"""Times as documents have them."""

import datetime as dt


def instant(text: str) -> dt.datetime | None:
    """A time as ISO 8601; None if it is not one, or has no time zone."""
    try:
        found = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return found if found.tzinfo else None


def is_to_come(text: str) -> bool:
    """Whether it is a time after tomorrow, as a wrong clock gives."""
    found = instant(text)
    return found is not None and found > dt.datetime.now(dt.timezone.utc) + dt.timedelta(days=1)
