"""A test's cases as rows of the values of its last parameters.

    @cases((90, False), (91, True))
    def test_lock_is_old(tmp_path: Path, days: int, *, is_old: bool) -> None: ...

A value that is not a tuple is a row of one parameter. ``pytest.param`` gives a row an id or marks.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., None])


def cases(*rows: Any, ids: Sequence[str] | Callable[[Any], object] | None = None) -> Callable[[Test], Test]:
    """Run a test once for each row."""
    marked = [row if isinstance(row, tuple) else (row,) for row in rows]
    first = marked[0]
    width = len(first.values if hasattr(first, "values") else first)

    def decorate(test: Test) -> Test:
        names = list(inspect.signature(test).parameters)[-width:]
        decorated: Test = pytest.mark.parametrize(names, marked, ids=ids)(test)
        return decorated

    return decorate
