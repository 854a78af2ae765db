"""The built-in checks, one per file: ``<family>/<slug>.py``."""

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
    """The checks of a package with that layout; a module whose name begins with ``_`` holds helpers only.

    Raises:
        CheckDefinitionError: a module holds no check or several, or a check is not in the file that its id names.
    """
    found = [_only_check(module, path) for module, path in _modules(package)]
    return tuple(sorted(found, key=lambda check: (FAMILIES.index(check.family), check.id)))


def _modules(package: ModuleType) -> Iterator[tuple[ModuleType, str]]:
    """Each public module in a family's folder, and its path below the package."""
    for family in pkgutil.iter_modules(package.__path__):
        if not family.ispkg or family.name.startswith("_"):
            continue
        folder = importlib.import_module(f"{package.__name__}.{family.name}")
        for module in pkgutil.iter_modules(folder.__path__):
            if not module.name.startswith("_"):
                yield importlib.import_module(f"{folder.__name__}.{module.name}"), f"{family.name}/{module.name}.py"


def _only_check(module: ModuleType, path: str) -> Check:
    values = [value for value in vars(module).values() if isinstance(value, Check)]
    if len(values) != 1:
        raise CheckDefinitionError(f"{path}: expected one check per file, found {len(values)}")
    (check,) = values
    family, _, slug = check.id.partition(".")
    expected = f"{family}/{slug.replace('-', '_')}.py"
    if path != expected:
        raise CheckDefinitionError(f"{path}: the check {check.id} belongs in {expected}")
    return check
