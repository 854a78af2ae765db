"""Packages that export what their modules define, and import a module when something of it is first asked for.

A command that reads a checklist needs few of the facts' classes and nothing of the judge, and making a class costs a
quarter of a millisecond.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any


def from_modules(package: str, exports: Mapping[str, Sequence[str]]) -> Callable[[str], Any]:
    """The ``__getattr__`` of a package (PEP 562).

    The names stand in the package twice: imported under ``TYPE_CHECKING``, so that type checkers know them, and here.

    Args:
        package: its name.
        exports: module below it to the names that it exports from there.
    """
    module_of = {name: f"{package}.{module}" for module, names in exports.items() for name in names}

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(module_of[name]), name)
        # The next one who asks finds it without this function.
        setattr(sys.modules[package], name, value)
        return value

    return get
