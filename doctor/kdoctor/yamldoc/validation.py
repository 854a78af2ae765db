"""Validates a document with its pydantic model, and reports errors at the places of its nodes."""

import re
from collections.abc import Iterator
from typing import Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from kdoctor.documents import DIALECT
from kdoctor.errors import did_you_mean
from kdoctor.text.kinds import describe_kind
from kdoctor.yamldoc.nodes import Node, Path
from kdoctor.yamldoc.problems import Problem

Model = TypeVar("Model", bound=BaseModel)


class StrictPart(BaseModel):
    """A part of a document that people write: unknown keys and values of another type are errors."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)


class StrictDocument(StrictPart):
    """A whole document that people write."""

    @classmethod
    def json_schema(cls) -> dict[str, Any]:
        """The JSON Schema (draft 2020-12), titled by the document's schema version."""
        schema = cls.model_json_schema(by_alias=True)
        title = schema["properties"]["schema"]["const"]
        return {"$schema": DIALECT, **schema, "title": title}

    @classmethod
    def other_schema(cls, node: Node, noun: str) -> Problem | None:
        """The problem of a document that is something else, or of a version that this kdoctor does not know."""
        expected: str = get_args(cls.model_fields["schema_"].annotation)[0]
        stated = node.get("schema")
        if not isinstance(node.value, dict):
            # Nothing of the text: `extends` may name any file of the user who runs kdoctor.
            found = "a text" if isinstance(node.value, str) else describe_kind(node.data)
            return node.problem(f"expected a mapping that starts with 'schema: {expected}', not {found}")
        if stated is None:
            return node.problem(f"missing key 'schema', so this is not a {noun}: expected 'schema: {expected}'")
        if stated.value == expected:
            return None
        if re.fullmatch(rf"{expected.rpartition('/')[0]}/v\d+", str(stated.value)):
            message = f"unknown schema version {stated.value}: this kdoctor reads {expected}; upgrade keras-doctor"
            return stated.problem(message)
        return stated.problem(f"schema is {stated.value!r}, so this is not a {noun} (expected {expected})")


def invalid(message: str) -> PydanticCustomError:
    """What a validator raises. The message follows the name of the key: ``is empty``, or a sentence."""
    return PydanticCustomError("kdoctor", "{message}", {"message": message})


def strings_of(value: Any) -> Any:
    """One string as a list of one; null as an empty list. A validator that runs before a list's."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else value


def validate(model: type[Model], node: Node, noun: str) -> tuple[Model | None, list[Problem]]:
    """The document, or all its problems. ``noun`` says what it is, for messages."""
    try:
        return model.model_validate(node.data), []
    except ValidationError as error:
        return None, list(_problems(model, error.errors(include_url=False), node, noun))


def _problems(model: type[BaseModel], errors: list[ErrorDetails], node: Node, noun: str) -> Iterator[Problem]:
    for error in errors:
        path = tuple(step for step in error["loc"] if step != "[key]")
        at_key = error["type"] == "extra_forbidden" or "[key]" in error["loc"]
        yield node.at(path).problem(_message(model, error, path, node, noun), at_key=at_key)


def _message(model: type[BaseModel], error: ErrorDetails, path: Path, node: Node, noun: str) -> str:  # noqa: PLR0911 - a table of messages
    kind, value, name = error["type"], error["input"], _name(path, noun)
    if kind == "extra_forbidden":
        fields = _fields(model, path[:-1])
        return f"unknown key {path[-1]!r}{did_you_mean(str(path[-1]), fields) or '; expected ' + ', '.join(fields)}"
    if kind == "missing":
        return f"missing key {path[-1]!r}"
    if kind == "string_type" and (text := node.at(path).text) is not None:
        if not text:
            return f"{name} is empty"
        return f'YAML reads {name} as {describe_kind(value)}: put it in quotes, "{text}"'
    if kind in ("literal_error", "enum"):
        known = re.findall(r"'([^']+)'", str(error.get("ctx", {}).get("expected", "")))
        return f"{name} is {value!r}; expected one of {', '.join(known)}{did_you_mean(str(value), known)}"
    if kind in _EXPECTED:
        return f"{name}: expected {_EXPECTED[kind]}, not {describe_kind(value)}"
    message = error["msg"]
    if kind == "kdoctor" and message.startswith(f"{name} "):
        return message
    if kind == "kdoctor":
        return f"{name}{' ' if message.startswith('is ') else ': '}{message}"
    return f"{name} is {value!r}: {message[0].lower()}{message[1:]}"


_EXPECTED = {
    "string_type": "a string",
    "int_type": "a whole number",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "mapping_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}


def _fields(model: type[BaseModel], path: Path) -> list[str]:
    """The keys of the part at that path."""
    for step in path:
        field = next(
            (item for name, item in model.model_fields.items() if (item.validation_alias or name) == step), None
        )
        model = (_model_in(field.annotation) if field else None) or model
    return [str(field.validation_alias or name) for name, field in model.model_fields.items()]


def _model_in(annotation: Any) -> type[BaseModel] | None:
    if get_origin(annotation) is None and isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for part in get_args(annotation) if (found := _model_in(part))), None)


def _name(path: Path, noun: str) -> str:
    """A path for messages: ``'limit'``, ``entry of 'checks'``."""
    keys = [step for step in path if isinstance(step, str)]
    if path and isinstance(path[-1], int):
        return f"entry of {keys[-1]!r}"
    return repr(keys[-1]) if keys else f"the {noun}"
