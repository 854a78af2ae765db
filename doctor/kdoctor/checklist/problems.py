"""What is wrong with a checklist, and where."""

from __future__ import annotations

from kdoctor.yamldoc import DocumentError, Problem

__all__ = ["ChecklistError", "Problem"]


class ChecklistError(DocumentError):
    """A checklist cannot be used. It carries every problem that was found."""
