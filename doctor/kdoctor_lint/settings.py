"""The table ``[tool.kdoctor.lint]`` of a project's ``pyproject.toml``."""

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import field
from fnmatch import fnmatch
from pathlib import Path
from pkgutil import resolve_name
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kdoctor.errors import UsageError, did_you_mean
from kdoctor.inputs import read_bounded
from kdoctor.records import record
from kdoctor_lint.registry import rules_named

tomllib: Any = resolve_name("tomllib" if sys.version_info >= (3, 11) else "tomli")
_RELEASE = r"^\d+\.\d+(\.\d+)?$"
_TABLE = "tool.kdoctor.lint"
_KERAS_3 = (2, 16)  # The first TensorFlow that uses Keras 3
_MOST_BYTES = 16 * 2**20
_DISTRIBUTIONS = {"tensorflow": "tensorflow", "tensorflow_cpu": "tensorflow", "keras": "keras"}


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    select: list[str] = []
    ignore: list[str] = []
    per_file_ignores: Annotated[dict[str, list[str]], Field(alias="per-file-ignores")] = {}
    tensorflow: Annotated[str | None, Field(pattern=_RELEASE)] = None
    keras: Annotated[str | None, Field(pattern=_RELEASE)] = None


@record
class Settings:
    """A project's configuration of the linter."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    per_file_ignores: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """Ids of rules, by the glob pattern of the files that they do not apply to."""
    targets: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """The releases of TensorFlow and Keras that the scripts are for. Packages not listed are at their newest."""
    entry: str = ""  # The function with which the script starts, if the script does not call it
    folder: Path = Path()  # The folder of ``pyproject.toml``. Patterns are relative to it.

    def ignored_in(self, file: str) -> frozenset[str]:
        """The ids of the rules that do not apply to a file."""
        if not self.per_file_ignores:
            return frozenset()
        path = Path(file).resolve()
        inside = path.is_relative_to(self.folder)
        names = (path.name, path.relative_to(self.folder).as_posix() if inside else path.as_posix())
        found = (ids for pattern, ids in self.per_file_ignores.items() if any(fnmatch(name, pattern) for name in names))
        return frozenset().union(*found)


NO_SETTINGS = Settings()


def read_settings(start: Path) -> Settings:
    """The settings in the nearest ``pyproject.toml`` in a folder or above it.

    Raises:
        UsageError: the file is not valid TOML, or the table has an unknown key, rule or a value of another type.
    """
    folder = start.resolve()
    for parent in (folder, *folder.parents):
        file = parent / "pyproject.toml"
        if file.is_file():
            return _read(file)
    return NO_SETTINGS


def _read(file: Path) -> Settings:
    try:
        document = tomllib.loads(read_bounded(file, _MOST_BYTES).decode("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"cannot read {file}: {error}") from error
    tool: Any = document
    for key in ("tool", "kdoctor", "lint"):
        tool = tool.get(key, {}) if isinstance(tool, dict) else tool
    try:
        table = _Table.model_validate(tool)
    except ValidationError as error:
        raise UsageError(f"{file}: {_described(error)}") from error
    named = {"select": table.select, "ignore": table.ignore}
    named |= {f'per-file-ignores."{pattern}"': names for pattern, names in table.per_file_ignores.items()}
    ids = {key: _ids(file, key, names) for key, names in named.items()}
    return Settings(
        select=tuple(table.select),
        ignore=tuple(table.ignore),
        per_file_ignores={pattern: ids[f'per-file-ignores."{pattern}"'] for pattern in table.per_file_ignores},
        targets=releases(table.tensorflow, table.keras),
        folder=file.parent,
    )


def _ids(file: Path, key: str, names: Sequence[str]) -> frozenset[str]:
    try:
        return frozenset(rule for name in names for rule in rules_named(name))
    except UsageError as error:
        raise UsageError(f"{file}: {_TABLE}.{key}: {error.message}", hint=error.hint) from error


def _described(error: ValidationError) -> str:
    """The first mistake in the table: its place, and what is wrong there."""
    first = error.errors()[0]
    place = ".".join([_TABLE, *map(str, first["loc"])])
    if first["type"] == "extra_forbidden":
        known = [field.alias or name for name, field in _Table.model_fields.items()]
        return f"{place}: unknown key{did_you_mean(str(first['loc'][0]), known)}"
    if not first["loc"]:
        return f"{place}: must be a table"
    if first["type"] == "string_pattern_mismatch":
        return f'{place}: must be a release such as "2.16", not {first["input"]!r}'
    return f"{place}: {first['msg'][0].lower()}{first['msg'][1:]}"


def releases(tensorflow: str | None, keras: str | None) -> Mapping[str, tuple[int, int]]:
    """The releases to compare with, from versions. TensorFlow before 2.16 uses Keras 2 of the same number."""
    found = {name: _release(text) for name, text in (("tensorflow", tensorflow), ("keras", keras)) if text}
    if "keras" not in found and found.get("tensorflow", _KERAS_3) < _KERAS_3:
        found["keras"] = found["tensorflow"]
    return found


def installed_releases(python: Path) -> Mapping[str, tuple[int, int]]:
    """The releases installed for an interpreter, from the names of folders. The interpreter is not started.

    Raises:
        UsageError: its environment has no TensorFlow and no Keras.
    """
    prefix = python.parent.parent if python.is_file() else python
    found: dict[str, str] = {}
    for folder in sorted(prefix.glob("lib*/python*/site-packages/*.dist-info")):
        name, _, version = folder.name.removesuffix(".dist-info").partition("-")
        package = _DISTRIBUTIONS.get(name.lower())
        if package and re.match(r"\d+\.\d+", version):
            found[package] = version
    if not found:
        raise UsageError(
            f"no TensorFlow or Keras is installed for {python}",
            hint="--python takes the interpreter or the folder of a virtual environment.",
        )
    return releases(found.get("tensorflow"), found.get("keras"))


def _release(text: str) -> tuple[int, int]:
    major, minor = text.split(".")[:2]
    return int(major), int(minor)
