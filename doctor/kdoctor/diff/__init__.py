"""What a change of a checklist or of its lock means, for whoever reviews it."""

from kdoctor.diff.compare import all_new, compare, compare_locks
from kdoctor.diff.model import KINDS, Change, Comparison, Kind
from kdoctor.diff.sides import Side, from_files, from_git
from kdoctor.diff.written import FORMATS, render_diff, summary

__all__ = [
    "FORMATS",
    "KINDS",
    "Change",
    "Comparison",
    "Kind",
    "Side",
    "all_new",
    "compare",
    "compare_locks",
    "from_files",
    "from_git",
    "render_diff",
    "summary",
]
