from __future__ import annotations

import pytest

from kdoctor.text.numbers import whole


@pytest.mark.parametrize(("text", "number"), [("0", 0), ("007", 7), ("9" * 40, 10**40 - 1)])
def test_digits_are_a_number(text: str, number: int) -> None:
    assert whole(text) == number


@pytest.mark.parametrize("text", [None, "", "-1", "1.0", " 1", "²", "٣", "1٣", "9" * 41, "9" * 5000, "x"])
def test_anything_else_is_none(text: str | None) -> None:
    assert whole(text) is None
