"""The values in a version matrix: versions, specifiers, requirements and architectures, with their validation."""

import datetime as dt
import re
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Literal

from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version
from pydantic import AfterValidator, BeforeValidator, Field

from kdoctor.yamldoc.validation import invalid, strings_of

_CAPABILITY = re.compile(r"\d{1,2}\.\d")
_TARGET = re.compile(r"\d{2,3}[af]?")


@cache
def numbers(text: str) -> tuple[int, ...]:
    """A dotted version as integers, for comparing: ``535.161.08`` is 535, 161, 8.

    Raises:
        ValueError: it is not a dotted version.
    """
    parts = text.split(".")
    if not all(part.isascii() and part.isdecimal() for part in parts):
        raise ValueError(f"{text!r} is not a dotted version")
    return tuple(int(part) for part in parts)


def older_driver(driver: str, least: str) -> bool:
    """Whether a driver is older than another. A branch, such as ``545`` or JetPack's ``580.00``, means its newest."""
    given = numbers(driver.removesuffix(".00"))
    return given < numbers(least)[: len(given)]


@cache
def specifier(text: str) -> SpecifierSet:
    """A version specifier (PEP 440); each text is parsed once."""
    return SpecifierSet(text)


@cache
def meets(version: str, spec: str, *, prereleases: bool | None = None) -> bool:
    """Whether a version matches a specifier (PEP 440); each pair is compared once."""
    return specifier(spec).contains(version, prereleases=prereleases)


@cache
def parse_version(text: str) -> Version:
    """A version (PEP 440); each text is parsed once."""
    return Version(text)


@cache
def parse_requirement(text: str) -> Requirement:
    """A requirement (PEP 508); each text is parsed once, so it must not be changed."""
    return Requirement(text)


def _parsed_by(parse: Callable[[str], object], noun: str) -> AfterValidator:
    def check(text: str) -> str:
        try:
            parse(text)
        except (ValueError, InvalidVersion, InvalidSpecifier, InvalidRequirement):
            raise invalid(f"{text!r} is not {noun}") from None
        return text

    return AfterValidator(check)


def _filled(text: str) -> str:
    if not text.strip():
        raise invalid("is empty")
    return text


def _capability(text: str) -> str:
    if not _CAPABILITY.fullmatch(text):
        raise invalid(f"{text!r} is not a compute capability such as '8.6'")
    return text


def _architectures(value: Any) -> Any:
    is_list = isinstance(value, list | tuple) and all(isinstance(item, int) and 10 <= item < 1000 for item in value)  # noqa: PLR2004
    if not is_list or list(value) != sorted(set(value)):
        raise invalid(f"expected ascending architectures such as [70, 80, 90], not {value!r:.60}")
    return value


def _targets(value: Any) -> Any:
    """PTX targets; a number is one without a suffix."""
    texts = [str(item) if type(item) is int else item for item in value] if isinstance(value, list | tuple) else None
    if texts is None or not all(isinstance(text, str) and _TARGET.fullmatch(text) for text in texts):
        raise invalid(f"expected PTX targets such as [90] or [90a], not {value!r:.60}")
    return texts


def _date(text: str) -> str:
    try:
        dt.date.fromisoformat(text)
    except ValueError:
        raise invalid(f"{text!r} is not a date such as '2026-12-01'") from None
    return text


Text = Annotated[str, AfterValidator(_filled)]
Date = Annotated[str, AfterValidator(_date)]
Dotted = Annotated[Text, _parsed_by(numbers, "a dotted version such as '12.5.1'")]
VersionText = Annotated[Text, _parsed_by(Version, "a version (PEP 440) such as '2.21.0'")]
SpecifierText = Annotated[Text, _parsed_by(specifier, "a version specifier (PEP 440) such as '>=3.10,<3.14'")]
RequirementText = Annotated[Text, _parsed_by(parse_requirement, "a requirement (PEP 508) such as 'numpy<2'")]
Capability = Annotated[Text, AfterValidator(_capability)]
Texts = Annotated[tuple[Text, ...], Field(strict=False), BeforeValidator(strings_of)]
Requirements = Annotated[tuple[RequirementText, ...], Field(strict=False), BeforeValidator(strings_of)]
Architectures = Annotated[tuple[int, ...], Field(strict=False), BeforeValidator(_architectures)]
Targets = Annotated[tuple[str, ...], Field(strict=False), BeforeValidator(_targets)]
Positive = Annotated[int, Field(gt=0)]
CodeKind = Literal["machine code", "PTX"]
Sources = Texts
"""Where a row is from: short names of the matrix's sources, or text."""


def python_minors(text: str) -> tuple[str, ...]:
    """The minor releases of Python 3 that match a specifier, oldest first: ``3.9``, ``3.10``, ..."""
    wanted = specifier(text)
    return tuple(minor for minor in (f"3.{number}" for number in range(6, 30)) if wanted.contains(minor))
