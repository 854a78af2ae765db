"""A diagnosis as JSON (``kdoctor schema diagnosis``)."""

from kdoctor.text.canvas import Canvas
from kdoctor_diagnose.model import Diagnosis


def render_json(diagnosis: Diagnosis, canvas: Canvas) -> str:
    """The document."""
    return diagnosis.to_json()
