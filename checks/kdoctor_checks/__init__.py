"""The built-in checks, one a file: ``<family>/<slug>.py``; with an index of them, ``index.json`` (``make docs``)."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from importlib.machinery import SourceFileLoader
from types import ModuleType

from kdoctor.check import Check, CheckDefinitionError
from kdoctor.check_index import Index, Module, digest, import_only_check, index_text
from kdoctor.model import FAMILIES

__all__ = ["checks", "collect", "index_of"]


def checks() -> tuple[Check, ...]:
    """Every built-in check, in the order of the families and then of the ids; imported when it is needed.

    Raises:
        CheckDefinitionError: see :func:`collect`.
    """
    try:
        known = pkgutil.get_data(__name__, "index.json")
    except OSError:
        known = None
    return collect(sys.modules[__name__], Index(known or b""))


def collect(package: ModuleType, known: Index | None = None) -> tuple[Check, ...]:
    """The checks of a package of that layout; a module whose name begins with ``_`` holds helpers only.

    Args:
        package: where they are.
        known: the package's index; a module that it does not know as it stands is imported at once.

    Raises:
        CheckDefinitionError: a module holds no check or several, a check does not stand in the file that
            its id names, or two checks have one id.
    """
    found: dict[str, Check] = {}
    for module in _modules(package):
        load = partial(import_only_check, module.name, module.path)
        check = (known.find(module, load) if known else None) or load()
        if check.id in found:
            raise CheckDefinitionError(f"{module.path}: there is a check {check.id} already")
        if module.path != _path_of(check.id):
            raise CheckDefinitionError(f"{module.path}: the check {check.id} belongs in {_path_of(check.id)}")
        found[check.id] = check
    return tuple(sorted(found.values(), key=lambda check: (FAMILIES.index(check.family), check.id)))


def index_of(package: ModuleType) -> str:
    """The index of a package of that layout, as it should be: every module is imported.

    Raises:
        CheckDefinitionError: see :func:`collect`; or a parameter is of a type that the index cannot hold.
    """
    by_path = {_path_of(check.id): check for check in collect(package)}
    return index_text((module, by_path[module.path]) for module in _modules(package))


def _modules(package: ModuleType) -> Iterator[Module]:
    """Each public module inside a family's folder."""
    for root in package.__path__:
        common = digest(*_helpers(_sources(root))).encode()
        for family in pkgutil.iter_modules([root]):
            if not family.ispkg or family.name.startswith("_"):
                continue
            sources = _sources(f"{root}/{family.name}")
            helpers = digest(common, *_helpers(sources))
            for name, source in sources.items():
                if not name.startswith("_"):
                    yield Module(
                        name=f"{package.__name__}.{family.name}.{name}",
                        path=f"{family.name}/{name}.py",
                        digest=digest(source),
                        helpers=helpers,
                    )


def _sources(folder: str) -> dict[str, bytes]:
    """The modules of a folder by their names; nothing stands for a source that is no plain file."""
    found: dict[str, bytes] = {}
    for _, name, is_package in pkgutil.iter_modules([folder]):
        path = f"{folder}/{name}/__init__.py" if is_package else f"{folder}/{name}.py"
        try:
            found[name] = SourceFileLoader(name, path).get_data(path)
        except OSError:
            found[name] = b""
    return found


def _helpers(sources: Mapping[str, bytes]) -> Iterator[bytes]:
    """The sources of the helpers: a constant of theirs may be a parameter's default."""
    return (source for name, source in sources.items() if name.startswith("_"))


def _path_of(check_id: str) -> str:
    family, _, slug = check_id.partition(".")
    return f"{family}/{slug.replace('-', '_')}.py"
