"""Reads the stages of a Dockerfile: base images and what pip installs."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile

from packaging.requirements import InvalidRequirement, Requirement

_VARIABLE = re.compile(r"\$(?:\{(?P<long>\w+)(?::?-(?P<default>[^}]*))?\}|(?P<short>\w+))")
_HEREDOC = re.compile(r"(?<!<)<<(?P<tabs>-?)(?P<quote>[\"']?)(?P<word>[A-Za-z_]\w{0,60})(?P=quote)(?![\w<])")
_WITH_HEREDOC = ("RUN", "COPY", "ADD")
_SHELL = re.compile(r"(?:--\S+ +)*(?:(?:\S*/)?(?:ba|da|a|z)?sh(?: +-\w+)*)? *")
_TENSORFLOW_IMAGE = re.compile(r"(?:^|/)tensorflow:([0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3})(?![\w.])")
_IS_SHELL = re.compile(r"(?:\S*/)?(?:ba|da|a|z)?sh")
_RUNS = re.compile(r"-\w*c")
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
    """A package that pip installs, or that the base image has."""

    line: int
    requirement: Requirement
    is_in_image: bool = False


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
            for name, value in _variables(rest):
                arguments[name] = _expanded(value.strip("\"'"), arguments)
        elif instruction == "FROM":
            words = [word for word in _expanded(rest, arguments).split() if not word.startswith("--")]
            if not words:
                continue
            parent = named.get(words[0].lower())
            image = parent.image if parent else words[0]
            stage = Stage(line=line, image=image, pins=list(parent.pins) if parent else _pins_of(image, line))
            stages.append(stage)
            if len(words) > 2 and words[1].upper() == "AS":  # noqa: PLR2004 - FROM image AS name
                named[words[2].lower()] = stage
        elif instruction == "RUN" and stages:
            command = _expanded(_command(rest), arguments)
            stages[-1].pins += [Pin(line=line, requirement=one) for one in installed(command)]
    return stages


def _variables(rest: str) -> list[tuple[str, str]]:
    """The variables that ``ARG`` or ``ENV`` sets, also as ``ENV name value``."""
    old = re.fullmatch(r"(\w+)\s+([^=]*)", rest)
    return [(old[1], old[2].strip())] if old else re.findall(r"(\w+)=(\"[^\"]*\"|'[^']*'|\S+)", rest)


def _pins_of(image: str, line: int) -> list[Pin]:
    """The TensorFlow of an image of its maintainers."""
    found = _TENSORFLOW_IMAGE.search(image)
    return [Pin(line=line, requirement=Requirement(f"tensorflow=={found[1]}"), is_in_image=True)] if found else []


def _command(rest: str) -> str:
    """The shell command of ``RUN``, also of its form as a list."""
    if rest.startswith("["):
        try:
            words = json.loads(rest)
        except (ValueError, RecursionError):
            return rest
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            return shlex.join(words)
    return rest


def instructions(text: str) -> Iterator[tuple[int, str, str]]:
    """Line, name and arguments of each instruction. Continued lines are joined, and comments left out.

    A here-document is not a list of instructions. If the shell of ``RUN`` reads it, its lines follow the arguments.
    """
    parts: list[str] = []
    first = 0
    lines = iter(enumerate(text.splitlines(), 1))
    for number, line in lines:
        if line.lstrip().startswith("#") or (parts and not line.strip()):
            continue
        first = first if parts else number
        parts.append(line.rstrip().removesuffix("\\"))
        if line.rstrip().endswith("\\"):
            continue
        name, _, rest = " ".join(part.strip() for part in parts).partition(" ")
        parts = []
        if name.upper() in _WITH_HEREDOC:
            rest = _with_documents(name.upper(), rest.strip(), lines)
        if name:
            yield first, name.upper(), rest.strip()


def _with_documents(name: str, rest: str, lines: Iterator[tuple[int, str]]) -> str:
    """The arguments, and the here-documents if a shell reads them. Their lines are used up."""
    bodies = [_document(lines, one["word"], tabs=bool(one["tabs"])) for one in _HEREDOC.finditer(rest)]
    if not bodies or name != "RUN" or not _SHELL.fullmatch(_HEREDOC.sub("", rest)):
        return rest
    scripts = ["\n".join(body) for body in bodies if not (body and re.match(r"#!(?!.*sh\b)", body[0]))]
    return "\n".join([_HEREDOC.sub("", rest), *scripts]).replace("\\\n", " ")


def _document(lines: Iterator[tuple[int, str]], end: str, *, tabs: bool) -> list[str]:
    """The lines of a here-document, up to its last one; with ``<<-``, without tabs before them."""
    return list(takewhile(lambda line: line != end, (line.lstrip("\t") if tabs else line for _, line in lines)))


def _expanded(text: str, arguments: dict[str, str]) -> str:
    def value(found: re.Match[str]) -> str:
        return arguments.get(found["long"] or found["short"], found["default"] or "")

    return _VARIABLE.sub(value, text)


def installed(command: str) -> Iterator[Requirement]:
    """The requirements of each ``pip install`` in a shell command, also those of uv."""
    for words in _commands(command):
        script = _script(words)
        if script is not None:
            yield from installed(script)
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


def _script(words: list[str]) -> str | None:
    """What a shell runs that the command starts, as in ``bash -c``."""
    shells = [place for place, word in enumerate(words) if _IS_SHELL.fullmatch(word)]
    flags = [place for place in range(shells[0], len(words) - 1) if _RUNS.fullmatch(words[place])] if shells else []
    return words[flags[0] + 1] if flags else None


def _commands(text: str) -> Iterator[list[str]]:
    """The words of each command. What is quoted is one word, and comments are left out."""
    for line in text.split("\n"):
        reader = shlex.shlex(line, posix=True, punctuation_chars="();&|")
        reader.whitespace_split, reader.commenters = True, ""
        words: list[str] = []
        with contextlib.suppress(ValueError):  # a quote without its end: what comes before it counts
            for word in reader:
                if word.startswith("#"):
                    break
                if word.strip("();&|"):
                    words.append(word)
                else:
                    yield words
                    words = []
        yield words
