"""Batches that hold what the first ones do not, such as NaN or a rare label: a job fails where it meets them."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional, Set, Tuple

import numpy as np

_MOST_VALUES = 1_000_000
"""Larger parts are pictures, not labels or words, of which a layer may refuse the largest or smallest."""
_SIDES: Tuple[Callable[[Any], Any], ...] = (np.max, np.min)


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
        self._usual: Dict[Tuple[int, int], Any] = {}
        """The largest and smallest value of each part so far."""
        self._kept: Dict[Tuple[int, int], Any] = {}

    def look(self, name: str, parts: List[Any], batch: Any, *, is_kept: bool) -> None:
        """Look at the next batch.

        Args:
            name: of the batch.
            parts: its arrays.
            batch: the same in its structure.
            is_kept: whether it is one of those that are trained here without being unusual.
        """
        self.seen += 1
        form = tuple((part.shape[1:], part.dtype.kind, len(part) == len(parts[0])) for part in parts)
        if is_kept:
            self._forms.add(form)
        elif self.odd is None and self._forms != {*self._forms, form} and len(self._forms) == 1:
            self.odd = name, batch
        for place, part in enumerate(parts):
            if not np.issubdtype(part.dtype, np.number) or not part.size:
                continue
            if np.issubdtype(part.dtype, np.floating) and not np.isfinite(part).all():
                if self.nonfinite is None:
                    self.nonfinite = name
                    self._keep((-1, 0), batch, is_kept=is_kept)
            elif part.size <= _MOST_VALUES and _is_whole(part):
                for side, extreme in enumerate(_SIDES):
                    value, key = extreme(part), (place, side)
                    if key not in self._usual or extreme([value, self._usual[key]]) != self._usual[key]:
                        self._usual[key] = value
                        self._keep(key, batch, is_kept=is_kept)

    def _keep(self, key: Tuple[int, int], batch: Any, *, is_kept: bool) -> None:
        if is_kept:
            self._kept.pop(key, None)
        else:
            self._kept[key] = batch

    @property
    def batches(self) -> List[Any]:
        """Each of them once, the most unusual first."""
        return list({id(batch): batch for _, batch in sorted(self._kept.items(), key=lambda item: item[0])}.values())


def _is_whole(part: Any) -> bool:
    return np.issubdtype(part.dtype, np.integer) or bool((part == np.floor(part)).all())
