"""An index of a package's checks: what a checklist needs to know of each, without importing its module.

Importing 137 modules takes longer than all else that ``kdoctor checklist validate`` does. The index is written by
``make docs`` and read beside the modules. It cannot lie: an entry counts only as long as its module, and the helpers
that stand beside it, are byte for byte what it was made of; any other module is imported as if there were no index.
Should a definition depend on something else and change with that, the module is found to differ when it is imported.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kdoctor.check import Body, Check, CheckDefinitionError, Parameter
from kdoctor.model import Severity

SCHEMA = "kdoctor/check-index/v1"

_TYPES: Mapping[str, Any] = {
    "bool": bool,
    "int": int,
    "float": float,
    "str": str,
    "tuple[str, ...]": tuple[str, ...],
}
"""Types of parameters by their names; a ``Literal`` is written as the list of its values."""

Import = Callable[[], Check]
"""Imports a module and hands out its check."""


@dataclass(frozen=True, kw_only=True)
class Module:
    """A module of a check, before it is imported."""

    name: str
    """As ``import`` calls it."""
    path: str
    """Below the package, with ``/``."""
    digest: str
    """Of its source."""
    helpers: str
    """Digest of the helpers that it may take a parameter's default from."""

    @property
    def folder(self) -> str:
        """The folder that it shares its helpers with."""
        return self.path.rpartition("/")[0]


def digest(*sources: bytes) -> str:
    """A digest of sources, however their lines end."""
    whole = hashlib.blake2b(digest_size=8)
    for source in sources:
        plain = source.replace(b"\r\n", b"\n")
        whole.update(b"%d:" % len(plain) + plain)
    return whole.hexdigest()


class Index:
    """What is known of some checks. It is empty where the text is none that this kdoctor wrote."""

    def __init__(self, text: str | bytes) -> None:
        try:
            read = json.loads(text)
            is_known = read["schema"] == SCHEMA
            self._helpers = dict(read["helpers"])
            self._entries = {entry["path"]: entry for entry in read["checks"]} if is_known else {}
        except (ValueError, KeyError, TypeError):
            self._entries = {}

    def find(self, module: Module, load: Import) -> Check | None:
        """The check of a module that is still what the index was made of, to be imported by ``load`` when needed."""
        entry = self._entries.get(module.path)
        if entry is None or (entry["digest"], self._helpers.get(module.folder)) != (module.digest, module.helpers):
            return None
        return _defined(entry, load)


def _defined(entry: Mapping[str, Any], load: Import) -> Check:
    def body() -> Body:
        imported = load()
        if imported != found:
            raise CheckDefinitionError(f"{found.id}: the index of checks says otherwise than the module: make docs")
        return imported.body

    found = Check(
        id=entry["id"],
        title=entry["title"],
        why=entry["why"],
        severity=Severity(entry["severity"]),
        requires=tuple(entry["requires"]),
        needs_gpus=entry["needs_gpus"],
        scenario=entry["scenario"],
        judges=tuple(entry["judges"]),
        parameters={name: _parameter(name, *pair) for name, pair in entry["parameters"].items()},
        origin=body,
    )
    return found


def _parameter(name: str, kind: str | list[Any], default: Any) -> Parameter:
    if isinstance(kind, list):
        return Parameter(name=name, annotation=Literal[tuple(kind)], default=default)
    value = tuple(default) if isinstance(default, list) else default
    return Parameter(name=name, annotation=_TYPES[kind], default=value)


def index_text(checks: Iterable[tuple[Module, Check]]) -> str:
    """The index, one check a line, so that a change is easily read.

    Raises:
        CheckDefinitionError: a parameter is of a type that the index cannot hold.
    """
    listed = list(checks)
    helpers = {module.folder: module.helpers for module, _ in listed}
    lines = [json.dumps(_entry(module, check), ensure_ascii=False) for module, check in listed]
    return (
        f'{{"schema": "{SCHEMA}", "helpers": {json.dumps(helpers, indent=2)}, "checks": [\n'
        + ",\n".join(lines)
        + "\n]}\n"
    )


def _entry(module: Module, check: Check) -> dict[str, Any]:
    return {
        "path": module.path,
        "digest": module.digest,
        "id": check.id,
        "title": check.title,
        "why": check.why,
        "severity": check.severity.value,
        "requires": check.requires,
        "needs_gpus": check.needs_gpus,
        "scenario": check.scenario,
        "judges": check.judges,
        "parameters": {item.name: (_kind(check, item), item.default) for item in check.parameters.values()},
    }


def _kind(check: Check, parameter: Parameter) -> str | list[Any]:
    import typing

    if typing.get_origin(parameter.annotation) is Literal:
        return list(typing.get_args(parameter.annotation))
    for name, annotation in _TYPES.items():
        if parameter.annotation == annotation:
            return name
    raise CheckDefinitionError(f"{check.id}: the index of checks does not know the type of {parameter.name!r}")


def import_only_check(name: str, path: str) -> Check:
    """Import a module and hand out its check.

    Raises:
        CheckDefinitionError: it holds none, or several.
    """
    values = [value for value in vars(importlib.import_module(name)).values() if isinstance(value, Check)]
    if len(values) != 1:
        raise CheckDefinitionError(f"{path}: one check a file, but this one holds {len(values)}")
    return values[0]
