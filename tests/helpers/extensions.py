"""What extensions add to the machines of the tests, if they are installed: ``helpers/kdoctor_<name>/machine.py``."""

from __future__ import annotations

import importlib
from pathlib import Path

from kdoctor.facts import FactGroup


def facts_of_extensions(name: str) -> tuple[FactGroup, ...]:
    """The facts with that name in each of these files, such as ``PLAIN`` and ``WHOLE``."""
    files = sorted(Path(__file__).parent.glob("kdoctor_*/machine.py"))
    modules = (importlib.import_module(f"helpers.{file.parent.name}.machine") for file in files)
    return tuple(fact for module in modules for fact in getattr(module, name, ()))
