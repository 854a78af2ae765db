"""Facts that only the output of other tools has."""

from kdoctor_recordings.facts.diagnostics import Diagnostic, Diagnostics, DiagnosticStatus
from kdoctor_recordings.facts.imported import ImportedLines, UnreadLine

__all__ = ["GROUPS", "Diagnostic", "DiagnosticStatus", "Diagnostics", "ImportedLines", "UnreadLine"]

GROUPS = (Diagnostics, ImportedLines)
"""For the entry point ``kdoctor.facts``."""
