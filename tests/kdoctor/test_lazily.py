from __future__ import annotations

import ast
import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PACKAGES = ("kdoctor.checklist", "kdoctor.facts", "kdoctor.lock")


def imported_for_type_checkers(package: Any) -> dict[str, str]:
    """Name to the module that it comes from, as type checkers see it."""
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    return {
        alias.name: str(node.module) for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_exports_what_type_checkers_see(name: str) -> None:
    package = importlib.import_module(name)
    seen = imported_for_type_checkers(package)
    assert set(package.__all__) == set(seen)
    for exported, module in seen.items():
        assert getattr(package, exported) is getattr(importlib.import_module(module), exported)


@pytest.mark.parametrize("name", PACKAGES)
def test_no_module_bears_the_name_of_what_its_package_exports(name: str) -> None:
    """Python would put the module in the export's place."""
    package = importlib.import_module(name)
    assert not {module.name for module in pkgutil.iter_modules(package.__path__)} & set(package.__all__)


@pytest.mark.parametrize("name", PACKAGES)
def test_a_name_that_is_not_exported_is_refused(name: str) -> None:
    package = importlib.import_module(name)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing'"):
        _ = package.nothing


def test_one_group_of_facts_imports_no_other() -> None:
    program = "import sys; from kdoctor.facts import Packages; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert {name for name in loaded if name.startswith("kdoctor.facts.")} == {
        "kdoctor.facts.packages",
        "kdoctor.facts.base",
    }
