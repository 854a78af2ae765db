"""Names of the subjects of findings."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kdoctor.text.lists import ranges, some

_GPU = re.compile(r"GPU (\d+)(?: \([^()]*\))?")


def gpu_index(subject: str) -> int | None:
    """The index of the GPU that a subject names (``GPU 3 (0000:5e:00.0)``); None for any other subject."""
    found = _GPU.fullmatch(subject)
    return int(found[1]) if found else None


def name_subjects(subjects: Sequence[str]) -> str:
    """Several GPUs as ranges (``GPU 0-3, 5``), one GPU with its address, and of other subjects the first three."""
    unique = list(dict.fromkeys(subjects))
    indices = [gpu_index(subject) for subject in unique]
    if len(unique) > 1 and None not in indices:
        return f"GPU {ranges(index for index in indices if index is not None)}"
    return some(unique)
