"""Versions and other values of a version matrix."""

from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from helpers.cases import cases
from kdoctor.matrix import values
from kdoctor.matrix.values import numbers, older_driver, python_minors


def test_dotted_version_is_compared_by_its_numbers() -> None:
    assert numbers("535.161.08") == (535, 161, 8)
    assert numbers("12") == (12,)
    for text in ("", "12.", "12.x", "12.1rc1", "-1", "\N{ARABIC-INDIC DIGIT ONE}.2"):
        with pytest.raises(ValueError, match="not a dotted version"):
            numbers(text)


@cases(
    ("535.161.08", "535.161.08", False),
    ("535.161.07", "535.161.08", True),
    ("535.54.03", "535.161.08", True),
    ("550.40", "535.161.08", False),
    ("535", "535.161.08", False),  # the newest release of its branch
    ("530", "535.161.08", True),
    ("535.161", "535.161.08", False),
    ("580.00", "580.65.06", False),
    ("580.00", "590.44.01", True),
    ("535.161.08.01", "535.161.08", False),
)
def test_older_driver(driver: str, least: str, *, is_older: bool) -> None:
    assert older_driver(driver, least) is is_older


@cases(
    (">=3.9,<3.13", ("3.9", "3.10", "3.11", "3.12")),
    ("==3.11.*", ("3.11",)),
    ("<3.8", ("3.6", "3.7")),
    (">=3.29", ("3.29",)),
    (">=4", ()),
    ("<3", ()),
)
def test_minor_releases_of_python(text: str, minors: tuple[str, ...]) -> None:
    assert python_minors(text) == minors


@cases(
    (values.Text, "a", "a"),
    (values.Text, " ", None),
    (values.Date, "2026-12-01", "2026-12-01"),
    (values.Date, "2026-13-01", None),
    (values.Dotted, "12.5.1", "12.5.1"),
    (values.Dotted, "12.5rc1", None),
    (values.VersionText, "2.22.0rc0", "2.22.0rc0"),
    (values.VersionText, "two", None),
    (values.SpecifierText, ">=3.10,<3.14", ">=3.10,<3.14"),
    (values.SpecifierText, "3.10", None),
    (values.RequirementText, "numpy<2", "numpy<2"),
    (values.RequirementText, "numpy < > 2", None),
    (values.Capability, "8.6", "8.6"),
    (values.Capability, "12.0", "12.0"),
    (values.Capability, "86", None),
    (values.Architectures, [70, 80, 90], (70, 80, 90)),
    (values.Architectures, [10], (10,)),
    (values.Architectures, [999], (999,)),
    (values.Architectures, [], ()),
    (values.Architectures, [9], None),
    (values.Architectures, [1000], None),
    (values.Architectures, [80, 70], None),
    (values.Architectures, [80, 80], None),
    (values.Architectures, ["80"], None),
    (values.Architectures, 80, None),
    (values.Targets, [90], ("90",)),
    (values.Targets, ["90a", 100], ("90a", "100")),
    (values.Targets, ["90b"], None),
    (values.Targets, [True], None),
    (values.Targets, [9], None),
    (values.Targets, "90", None),
    (values.Positive, 1, 1),
    (values.Positive, 0, None),
)
def test_value_is_read_or_refused(kind: Any, value: Any, read: Any) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    if read is None:
        with pytest.raises(ValidationError):
            adapter.validate_python(value)
    else:
        assert adapter.validate_python(value) == read
