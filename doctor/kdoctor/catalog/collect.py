"""The checks of a package that has one check per file: ``<family>/<slug>.py``.

A tuple ``CHECKS`` has those of a file that differ only in data.
"""

import importlib
import inspect
from collections.abc import Iterator
from importlib import resources
from types import ModuleType

from kdoctor.check import Check, CheckDefinitionError
from kdoctor.model import family_order
from kdoctor.plugins.installed import Traversable


def collect(package: ModuleType) -> tuple[Check, ...]:
    """All checks of a package with that layout. Modules whose names begin with ``_`` are helpers.

    Raises:
        CheckDefinitionError: a module has neither ``CHECKS`` nor exactly one check, or a check belongs in another file.
    """
    found = [check for module, path in _modules(package) for check in _checks_of(module, path)]
    return tuple(sorted(found, key=lambda check: (family_order(check.family), check.id)))


def _modules(package: ModuleType) -> Iterator[tuple[ModuleType, str]]:
    """Each public module of a family, and its path in the package."""
    for family in _listed(resources.files(package)):
        if not (family.is_dir() and any(inner.name.startswith("__init__.") for inner in family.iterdir())):
            continue
        folder = f"{package.__name__}.{family.name}"
        for file in _listed(family):
            if name := inspect.getmodulename(file.name):
                yield importlib.import_module(f"{folder}.{name}"), f"{family.name}/{name}.py"


def _listed(folder: Traversable) -> list[Traversable]:
    """What is public in a folder. Unlike with ``pkgutil``, one that cannot be read is an error and not an empty one."""
    return sorted((file for file in folder.iterdir() if not file.name.startswith("_")), key=lambda file: file.name)


def _checks_of(module: ModuleType, path: str) -> tuple[Check, ...]:
    """The only check of a module, or those in its tuple ``CHECKS``."""
    records: tuple[Check, ...] | None = getattr(module, "CHECKS", None)
    for check in records or ():
        if check.family != path.partition("/")[0]:
            raise CheckDefinitionError(f"{path}: the check {check.id} belongs in the folder {check.family}")
    return (_only_check(module, path),) if records is None else records


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
