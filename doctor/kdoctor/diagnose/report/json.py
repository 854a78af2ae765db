"""A diagnosis as JSON (``kdoctor schema diagnosis``)."""

from __future__ import annotations

from kdoctor.diagnose.model import Diagnosis
from kdoctor.text.canvas import Canvas


def render_json(diagnosis: Diagnosis, canvas: Canvas) -> str:
    """The document."""
    return diagnosis.to_json()
