"""What a checklist expected when its lock was recorded, in one line."""

from __future__ import annotations

import hashlib

from kdoctor.checklist.resolve import Checklist
from kdoctor.checklist.text import plain_text


def expectations_of(checklist: Checklist) -> str:
    """Digest of what a checklist expects: of its plain text, so that order and comments do not matter."""
    return f"sha256:{hashlib.sha256(plain_text(checklist).encode()).hexdigest()}"
