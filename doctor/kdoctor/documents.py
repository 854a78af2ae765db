"""Base classes of the documents that kdoctor reads and writes as JSON."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import pairwise
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from kdoctor.text.kinds import describe_kind
from kdoctor.text.sanitize import clean_json

Record = TypeVar("Record")

DIALECT = "https://json-schema.org/draft/2020-12/schema"

adapter_of: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)
"""Reads a type: making an adapter takes longer than reading with it, and many checks read the same record."""


def fitted(record: Record) -> Record:
    """A dataclass of a plugin, with values of the types that it declares: a list becomes a tuple.

    Raises:
        TypeError: a value cannot be one of its type, with its place and what was found.
    """
    given = {one.name: getattr(record, one.name) for one in fields(record)}  # type: ignore[arg-type]
    parts = {
        name: fitted(value) for name, value in given.items() if is_dataclass(value) and not isinstance(value, type)
    }
    try:
        made: Record = adapter_of(type(record)).validate_python({**given, **parts})
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, (type(record).__name__, *first["loc"])))
        message = first["msg"].replace("Input should be", "expected").replace("a valid integer", "an integer")
        raise TypeError(f"{place}: {message.replace('a valid', 'a')}, found {describe_kind(first['input'])}") from error
    return record if made == record else made  # a text of an own class stays one


def attribute_docstrings(record: type) -> dict[str, str]:
    """What the text below each attribute says, by its name, of a class and those that it derives from.

    Pydantic's ``use_attribute_docstrings`` reads them when a class is made. Only a schema needs them.
    """
    found: dict[str, str] = {}
    for part in reversed(record.__mro__[:-1]):
        if not part.__module__.startswith("kdoctor"):
            continue
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(part))).body
        body = definition.body if isinstance(definition, ast.ClassDef) else []
        for line, text in pairwise(body):
            if (
                isinstance(line, ast.AnnAssign)
                and isinstance(line.target, ast.Name)
                and isinstance(text, ast.Expr)
                and isinstance(text.value, ast.Constant)
            ):
                found[line.target.id] = inspect.cleandoc(str(text.value.value))
    return found


class Part(BaseModel):
    """A part of a document. Within a schema version keys are only added, so unknown ones are allowed."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, defer_build=True)


class Document(Part):
    """A whole document: it validates what is read, is written as JSON, and gives its JSON Schema (draft 2020-12)."""

    def to_json(self) -> str:
        """The document as JSON text with a final line feed."""
        return clean_json(self.model_dump_json(by_alias=True, indent=2)) + "\n"

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The JSON Schema, titled by the document's schema version."""
        schema = cls.model_json_schema(by_alias=True, mode="serialization")
        return {"$schema": DIALECT, **schema, "title": schema["properties"]["schema"]["const"]}
