"""What tests know of extensions, which may not be installed.

``helpers/kdoctor_<name>/machine.py`` has the facts that an extension adds to the machines of the tests.
"""

import importlib
import re
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from kdoctor.facts import FactGroup


def facts_of_extensions(name: str) -> tuple[FactGroup, ...]:
    """The facts with that name in each of these files, such as ``PLAIN`` and ``WHOLE``."""
    files = sorted(Path(__file__).parent.glob("kdoctor_*/machine.py"))
    modules = (importlib.import_module(f"helpers.{file.parent.name}.machine") for file in files)
    return tuple(fact for module in modules for fact in getattr(module, name, ()))


_HELPERS = Path(__file__).parent
_IMPORT = re.compile(r"^ *(?:from|import) (kdoctor_[a-z]+|helpers(?:\.\w+)*)(?: import ([\w, ]+))?", re.MULTILINE)


def missing_extensions(file: Path) -> frozenset[str]:
    """The extensions that a test imports, itself or through helpers, and that are not installed."""
    seen, waiting = {file}, [file]
    packages: set[str] = set()
    while waiting:
        found, helpers = _imports(waiting.pop())
        packages |= found
        waiting += helpers - seen
        seen |= helpers
    return frozenset(name for name in packages if not _is_installed(name))


@cache
def _is_installed(package: str) -> bool:
    return find_spec(package) is not None


@cache
def _imports(file: Path) -> tuple[frozenset[str], frozenset[Path]]:
    """The extensions that a file imports, and the files of the helpers that it imports."""
    packages: set[str] = set()
    helpers: set[Path] = set()
    for module, names in _IMPORT.findall(file.read_text(encoding="utf-8")):
        packages |= {part for part in module.split(".") if part.startswith("kdoctor_")}
        helpers |= set(_modules_of(module, names)) if module.startswith("helpers") else set()
    return frozenset(packages), frozenset(helpers)


def _modules_of(module: str, names: str) -> list[Path]:
    """The files that an import from ``helpers`` reads."""
    place = _HELPERS.joinpath(*module.split(".")[1:])
    places = [place, *(place / name.split(" as ")[0].strip() for name in names.split(","))]
    candidates = [*(one.with_suffix(".py") for one in places), *(one / "__init__.py" for one in places)]
    return [one for one in candidates if one.is_file() and one.parent != _HELPERS.parent]
