"""Batches that hold what the first ones do not, such as NaN or a rare label: a job fails where it meets them."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import numpy as np

_MOST_VALUES = 1_000_000
"""Larger parts are pictures, not labels or words, of which a layer may refuse the largest or smallest."""
_SIDES: Tuple[Callable[[Any], Any], ...] = (np.max, np.min)
_Key = Tuple[int, int]
"""A part and a side; (-1, 0) for NaN and infinity."""


class Unusual:
    """Keeps the batch with the first NaN or infinity, and those with the largest and smallest whole numbers."""

    def __init__(self) -> None:
        """Nothing was seen yet."""
        self.seen = 0
        self.nonfinite: Optional[str] = None
        """The name of the first batch that holds NaN or infinity."""
        self.odd: Optional[Tuple[str, Any]] = None
        """The first batch with other shapes or types than all that are trained, and its name."""
        self._forms: Set[Tuple[Any, ...]] = set()
        self._shapes: List[Any] = []
        self._extremes: Dict[_Key, Any] = {}
        """The largest and smallest value of each part so far."""
        self._kept: Dict[_Key, Any] = {}

    def look(self, name: str, parts: List[Any], batch: Any, *, is_first: bool) -> None:
        """Look at the next batch.

        Args:
            name: of the batch.
            parts: its arrays.
            batch: the same in its structure.
            is_first: whether it is one of the first ones, which are trained anyway.
        """
        self.seen += 1
        form = tuple((part.shape[1:], part.dtype.kind, part.shape[:1] == parts[0].shape[:1]) for part in parts)
        if is_first:
            self._forms.add(form)
            self._shapes = self._shapes or [part.shape for part in parts]
        elif self.odd is None and form not in self._forms and len(self._forms) == 1:
            self.odd = name, batch
        is_full = form in self._forms and self._shapes == [part.shape for part in parts]
        for key in [key for place, part in enumerate(parts) for key in self._new(name, place, part)]:
            if is_first:
                self._kept.pop(key, None)
            elif is_full:
                self._kept[key] = batch

    def _new(self, name: str, place: int, part: Any) -> List[_Key]:
        """What this part of a batch holds that none did before."""
        if part.dtype.kind not in "iuf" or not part.size:
            return []
        if part.dtype.kind == "f" and not np.isfinite(part).all():
            is_new, self.nonfinite = self.nonfinite is None, self.nonfinite or name
            return [(-1, 0)] if is_new else []
        if part.size > _MOST_VALUES or (part.dtype.kind == "f" and not (part == np.floor(part)).all()):
            return []
        found = []
        for side, extreme in enumerate(_SIDES):
            value, key = extreme(part), (place, side)
            if key not in self._extremes or extreme([value, self._extremes[key]]) != self._extremes[key]:
                self._extremes[key] = value
                found.append(key)
        return found

    @property
    def batches(self) -> List[Any]:
        """Those that are not among the first and have their shapes, each once, the most unusual first."""
        return list({id(batch): batch for _, batch in sorted(self._kept.items(), key=lambda item: item[0])}.values())
