"""The checks of a package that has one check per file: ``<family>/<slug>.py``.

A tuple ``CHECKS`` has those of a file that differ only in data.
"""

import importlib
import pkgutil
from collections.abc import Iterator
from types import ModuleType

from kdoctor.check import Check, CheckDefinitionError
from kdoctor.model import family_order


def collect(package: ModuleType) -> tuple[Check, ...]:
    """All checks of a package with that layout. Modules whose names begin with ``_`` are helpers.

    Raises:
        CheckDefinitionError: a module has neither ``CHECKS`` nor exactly one check, or a check belongs in another file.
    """
    found = [check for module, path in _modules(package) for check in _checks_of(module, path)]
    return tuple(sorted(found, key=lambda check: (family_order(check.family), check.id)))


def _modules(package: ModuleType) -> Iterator[tuple[ModuleType, str]]:
    """Each public module of a family, and its path in the package."""
    for family in pkgutil.iter_modules(package.__path__):
        if not family.ispkg or family.name.startswith("_"):
            continue
        folder = importlib.import_module(f"{package.__name__}.{family.name}")
        for module in pkgutil.iter_modules(folder.__path__):
            if not module.name.startswith("_"):
                yield importlib.import_module(f"{folder.__name__}.{module.name}"), f"{family.name}/{module.name}.py"


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
