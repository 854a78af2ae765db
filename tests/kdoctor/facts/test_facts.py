"""What all groups of facts have in common."""

import dataclasses
import importlib
import pkgutil
from typing import Any

import pytest

from kdoctor import facts, model
from kdoctor.engine import report as report_model


def kinds() -> list[Any]:
    modules = [importlib.import_module(f"kdoctor.facts.{found.name}") for found in pkgutil.iter_modules(facts.__path__)]
    defined = [value for module in (*modules, model, report_model) for value in vars(module).values()]
    classes = dict.fromkeys(value for value in defined if isinstance(value, type))
    return [kind for kind in classes if dataclasses.is_dataclass(kind)]


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.__name__)
def test_facts_and_reports_are_immutable(kind: Any) -> None:
    assert kind.__dataclass_params__.frozen
    mutable = [field.name for field in dataclasses.fields(kind) if str(field.type).startswith(("list", "dict", "set"))]
    assert mutable == []
