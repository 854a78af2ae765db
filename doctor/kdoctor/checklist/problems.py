"""The error of an invalid checklist."""

from kdoctor.yamldoc.problems import DocumentError, Problem

__all__ = ["ChecklistError", "Problem"]


class ChecklistError(DocumentError):
    """A checklist cannot be used. Carries every problem that was found."""
