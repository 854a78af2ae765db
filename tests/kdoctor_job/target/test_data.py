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


def test_later_batches_that_are_unusual_are_read_in_place_of_usual_ones() -> None:
    import keras

    from kdoctor_job.target.data import Data

    x: Any = np.zeros((40, 3), "float32")
    y: Any = np.ones(40, int)
    x[21, 1], y[30], y[35] = np.nan, 9, -1

    class Items(keras.utils.PyDataset):  # type: ignore[misc] # no types
        def __len__(self) -> int:
            return 10

        def __getitem__(self, index: int) -> Any:
            return x[index * 4 :][:4], y[index * 4 :][:4]

    for given in ((x, y), Items()):
        data = Data(given, own=False, batch_size=4)
        facts = data.examine(4, None)
        assert (facts["seen"], facts["nonfinite"], facts["batches"], facts["final_batch"]) == (10, "batch 6", 10, 4)
        assert len(data.full) == 4
        assert np.isnan(data.full[1][0][1, 1])
        assert {int(labels.max()) for _, labels in data.full} == {1, 9}
        assert {int(labels.min()) for _, labels in data.full} == {1, -1}


def test_numbers_without_an_order_and_texts_are_looked_at() -> None:
    from kdoctor_job.target.data import Data

    batches = [{"x": np.full((4, 2), number * 1j), "text": np.array(["a"] * 4)} for number in range(4)]
    facts = Data(iter(batches), own=True, batch_size=None).examine(2, None)
    assert (facts.get("problem"), facts["batches"]) == (None, 4)


def test_batch_of_other_shapes_is_odd_where_those_before_have_one_form() -> None:
    from kdoctor_job.target.data import Data

    def batches(*widths: int) -> Iterator[Any]:
        for width in widths:
            yield np.ones((4, width)), np.ones(4)
        yield np.ones((3, width)), np.ones(3)  # the final one

    for widths, name in (((2, 2, 2, 5, 6), "batch 4"), ((2, 3, 2, 5), None), ((2, 2, 2, 2), None)):
        data = Data(batches(*widths), own=True, batch_size=None)
        data.examine(2, None)
        assert (data.unusual.odd and data.unusual.odd[0]) == name


def test_error_of_a_later_batch_has_its_number() -> None:
    from kdoctor_job.target.data import Data

    def batches() -> Iterator[Any]:
        yield from numbered()
        raise OSError

    facts = Data(batches(), own=True, batch_size=None).examine(2, None)
    assert "batch 6 raised OSError" in facts["problem"]


def test_real_numbers_of_arrays_have_the_type_that_fit_gives_them() -> None:
    from kdoctor_job.target.data import Data

    arrays: Any = (np.ones((4, 2), "float64"), np.arange(4), np.ones(4, "float16"))
    data = Data(arrays, own=False, batch_size=2)
    data.examine(1, None)
    assert [part.dtype.name for part in data.full[0]] == ["float32", "int64", "float32"]  # as in Keras's array_slicing
