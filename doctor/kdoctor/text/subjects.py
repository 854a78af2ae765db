"""Names of the subjects of findings."""

import re
from collections.abc import Sequence

from kdoctor.text.lists import counted, ranges, some

_GPU = re.compile(r"GPU (\d+)(?: \([^()]*\))?")
_PAIR = re.compile(r"GPU (\d+) - GPU (\d+)")
_LISTED_PAIRS = 2


def gpu_index(subject: str) -> int | None:
    """The index of the GPU that a subject names (``GPU 3 (0000:5e:00.0)``); None for any other subject."""
    found = _GPU.fullmatch(subject)
    return int(found[1]) if found else None


def name_subjects(subjects: Sequence[str]) -> str:
    """Several subjects in short: GPUs as ranges (``GPU 0-3, 5``), many pairs by number, others by the first three.

    One GPU keeps its address. Pairs that share a GPU name it: ``4 pairs with GPU 2``.
    """
    unique = list(dict.fromkeys(subjects))
    indices = [gpu_index(subject) for subject in unique]
    if len(unique) > 1 and None not in indices:
        return f"GPU {ranges(index for index in indices if index is not None)}"
    pairs = [{found[1], found[2]} for found in map(_PAIR.fullmatch, unique) if found]
    if len(unique) == len(pairs) > _LISTED_PAIRS:
        shared = set.intersection(*pairs)
        pairs_counted = counted(len(pairs), "pair")
        return f"{pairs_counted} with GPU {shared.pop()}" if shared else f"{pairs_counted} of GPUs"
    return some(unique)
