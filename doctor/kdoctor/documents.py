"""Base classes of the documents that kdoctor reads and writes as JSON."""

import ast
import inspect
import textwrap
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter

from kdoctor.text.sanitize import clean_json

DIALECT = "https://json-schema.org/draft/2020-12/schema"

adapter_of: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)
"""Reads a type: making an adapter takes longer than reading with it, and many checks read the same record."""


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
