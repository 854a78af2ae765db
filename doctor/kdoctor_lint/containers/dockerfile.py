"""Reads the stages of a Dockerfile: base images and what pip installs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field

from packaging.requirements import InvalidRequirement, Requirement

_VARIABLE = re.compile(r"\$(?:\{(?P<long>\w+)(?::?-(?P<default>[^}]*))?\}|(?P<short>\w+))")
_SPLIT = re.compile(r"&&|\|\||;|\||\n")
_WITH_VALUE = frozenset(
    {
        *("-r", "--requirement", "-c", "--constraint", "-i", "--index-url", "--extra-index-url", "-f", "--find-links"),
        *("-t", "--target", "--prefix", "-p", "--python", "-e", "--editable"),
    }
)
"""Options of pip and uv whose next word is not a package."""

_LONGEST = 500
"""Longer than any requirement. Python refuses to read versions of thousands of digits."""


@dataclass(frozen=True, kw_only=True)
class Pin:
    """A package that pip installs."""

    line: int
    requirement: Requirement


@dataclass(kw_only=True)
class Stage:
    """A stage with the base image that it comes from, through other stages."""

    line: int
    image: str
    pins: list[Pin] = field(default_factory=list)


def read_stages(text: str) -> list[Stage]:
    """The stages in order. What is not understood is left out."""
    stages: list[Stage] = []
    named: dict[str, Stage] = {}
    arguments: dict[str, str] = {}
    for line, instruction, rest in instructions(text):
        if instruction in ("ARG", "ENV"):
            for name, value in re.findall(r"(\w+)=(\"[^\"]*\"|\S+)", rest):
                arguments[name] = _expanded(value.strip('"'), arguments)
        elif instruction == "FROM":
            words = [word for word in _expanded(rest, arguments).split() if not word.startswith("--")]
            if not words:
                continue
            parent = named.get(words[0].lower())
            stage = Stage(
                line=line, image=parent.image if parent else words[0], pins=list(parent.pins if parent else ())
            )
            stages.append(stage)
            if len(words) > 2 and words[1].upper() == "AS":  # noqa: PLR2004 - FROM image AS name
                named[words[2].lower()] = stage
        elif instruction == "RUN" and stages:
            stages[-1].pins += [Pin(line=line, requirement=one) for one in installed(_expanded(rest, arguments))]
    return stages


def instructions(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, name and arguments of each instruction. Continued lines are joined, and comments left out."""
    parts: list[str] = []
    first = 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or (parts and not line.strip()):
            continue
        first = first if parts else number
        parts.append(line.rstrip().removesuffix("\\"))
        if line.rstrip().endswith("\\"):
            continue
        name, _, rest = " ".join(part.strip() for part in parts).partition(" ")
        parts = []
        if name:
            yield first, name.upper(), rest.strip()


def _expanded(text: str, arguments: dict[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        return arguments.get(found["long"] or found["short"], found["default"] or "")

    return _VARIABLE.sub(value, text)


def installed(command: str) -> Iterator[Requirement]:
    """The requirements of each ``pip install`` in a shell command, also those of uv."""
    for part in _SPLIT.split(command):
        try:
            words = shlex.split(part)
        except ValueError:
            continue
        if "install" not in words or not any(re.search(r"(^|/)(pip[\d.]*|uv)$", word) for word in words):
            continue
        skip = False
        for word in words[words.index("install") + 1 :]:
            if skip or word.startswith("-"):
                skip = not skip and word in _WITH_VALUE
                continue
            if len(word) > _LONGEST:
                continue
            try:
                yield Requirement(word)
            except InvalidRequirement:
                continue  # a path or an address
