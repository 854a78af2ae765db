"""The built-in checks, one a file: ``<family>/<slug>.py``."""

from __future__ import annotations

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from types import ModuleType

from kdoctor.check import Check, CheckDefinitionError
from kdoctor.model import FAMILIES

__all__ = ["checks", "collect"]


def checks() -> tuple[Check, ...]:
    """Every built-in check, in the order of the families and then of the ids.

    Raises:
        CheckDefinitionError: see :func:`collect`.
    """
    return collect(sys.modules[__name__])


def collect(package: ModuleType) -> tuple[Check, ...]:
    """The checks of a package of that layout; a module whose name begins with ``_`` holds helpers only.

    Raises:
        CheckDefinitionError: a module holds no check or several, a check does not stand in the file that
            its id names, or two checks have one id.
    """
    found: dict[str, Check] = {}
    for path, module in _modules(package):
        check = _only_check(path, module)
        if check.id in found:
            raise CheckDefinitionError(f"{path}: there is a check {check.id} already")
        if path != _path_of(check.id):
            raise CheckDefinitionError(f"{path}: the check {check.id} belongs in {_path_of(check.id)}")
        found[check.id] = check
    return tuple(sorted(found.values(), key=lambda check: (FAMILIES.index(check.family), check.id)))


def _modules(package: ModuleType) -> Iterator[tuple[str, ModuleType]]:
    """Each public module inside a family's folder: its path below the package, and the module."""
    for family in pkgutil.iter_modules(package.__path__):
        if not family.ispkg or family.name.startswith("_"):
            continue
        folder = importlib.import_module(f"{package.__name__}.{family.name}")
        for entry in pkgutil.iter_modules(folder.__path__):
            if not entry.name.startswith("_"):
                module = importlib.import_module(f"{folder.__name__}.{entry.name}")
                yield f"{family.name}/{entry.name}.py", module


def _only_check(path: str, module: ModuleType) -> Check:
    values = [value for value in vars(module).values() if isinstance(value, Check)]
    if len(values) != 1:
        raise CheckDefinitionError(f"{path}: one check a file, but this one holds {len(values)}")
    return values[0]


def _path_of(check_id: str) -> str:
    family, _, slug = check_id.partition(".")
    return f"{family}/{slug.replace('-', '_')}.py"
