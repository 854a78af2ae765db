"""How the data of a job is read."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.tensorflow


def numbered() -> Iterator[Any]:
    """Batches in one array, as memory-saving generators make them."""
    batch = np.zeros(2)
    for number in range(5):
        batch[:] = number
        yield batch, batch + 10


def test_first_batches_of_a_generator_are_read_again() -> None:
    from kdoctor_job.target.data import read_again

    make = read_again(numbered(), 3)
    assert [int(x[0]) for x, _ in islice(make(), 2)] == [0, 1]
    assert [int(x[0]) for x, _ in make()] == [0, 1, 2, 3, 4]
    assert [(int(x[0]), int(y[0])) for x, y in make()] == [(0, 10), (1, 11), (2, 12)]


def test_real_numbers_of_arrays_have_the_type_that_fit_gives_them() -> None:
    from kdoctor_job.target.data import Data

    arrays: Any = (np.ones((4, 2), "float64"), np.arange(4), np.ones(4, "float16"))
    data = Data(arrays, own=False, batch_size=2)
    data.examine(1, None)
    assert [part.dtype.name for part in data.full[0]] == ["float32", "int64", "float32"]  # as in Keras's array_slicing
