"""A record is the frozen dataclass with keyword arguments that ``dataclass`` itself makes."""

import copy
import pickle
from collections.abc import Mapping
from dataclasses import FrozenInstanceError, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import pytest
from pydantic import TypeAdapter

from helpers.cases import cases
from kdoctor.records import record


def classes(make: Any) -> Any:
    """A class with one more field than its base, as the decorator makes it."""

    @make
    class Fan:
        index: int

    @make
    class Blower(Fan):
        speed: int | None = None
        errors: Mapping[str, str] = field(default_factory=dict, compare=False)

        @cached_property
        def name(self) -> str:
            return f"fan {self.index}"

    return Blower


Ours, Theirs = classes(record), classes(dataclass(frozen=True, kw_only=True))


@record
class Kept:
    """Of this module, so that it can be pickled."""

    speed: int
    half: float = 0.0

    def __post_init__(self) -> None:
        if self.speed < 0:
            raise ValueError(self.speed)


@cases({"index": 1}, {"index": 1, "speed": 3}, {"speed": 3, "index": 2, "errors": {"a": "b"}})
def test_record_is_the_dataclass(given: dict[str, Any]) -> None:
    ours, theirs = Ours(**given), Theirs(**given)
    assert repr(ours) == repr(theirs)
    assert hash(ours) == hash(theirs)
    assert vars(ours) == vars(theirs)
    assert list(vars(ours)) == list(vars(theirs))
    assert [one.name for one in fields(ours)] == [one.name for one in fields(theirs)]
    assert ours == Ours(**given) == replace(ours) == copy.deepcopy(ours)
    assert ours == replace(ours, errors={"c": "d"})
    assert ours != replace(ours, speed=7)
    assert ours != theirs
    assert TypeAdapter(Ours).validate_python(given) == ours
    assert (ours.name, ours) == ("fan " + str(given["index"]), Ours(**given))


def test_defaults_are_not_shared() -> None:
    assert Ours(index=1).errors is not Ours(index=1).errors


@cases({}, {"speed": 1}, {"index": 1, "sped": 1})
def test_arguments_are_those_of_the_fields(given: dict[str, int]) -> None:
    for made in (Ours, Theirs):
        with pytest.raises(TypeError, match="sped" if "sped" in given else "index"):
            made(**given)


def test_record_cannot_be_changed_and_is_checked() -> None:
    kept = Kept(speed=1)
    with pytest.raises(FrozenInstanceError):
        kept.speed = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del kept.speed
    with pytest.raises(ValueError, match="-1"):
        Kept(speed=-1)
    assert pickle.loads(pickle.dumps(kept)) == kept  # noqa: S301 - written here


def test_frozen_dataclass_of_a_third_party_inherits_from_a_record() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Wheel(Kept):
        spokes: int

    wheel = Wheel(speed=1, spokes=8)
    assert (wheel.speed, wheel.half, wheel.spokes) == (1, 0.0, 8)
    assert wheel != Kept(speed=1)


def test_own_methods_stay() -> None:
    @record
    class Named:
        name: str

        def __repr__(self) -> str:
            return self.name

        def __eq__(self, other: object) -> bool:
            return True

        def __hash__(self) -> int:
            return 1

    assert repr(Named(name="a")) == "a"
    assert Named(name="a") == Named(name="b")
    assert hash(Named(name="a")) == 1
