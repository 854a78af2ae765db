"""The distributions that are installed in the target environment."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from kdoctor.facts.base import FactGroup


def canonical_name(name: str) -> str:
    """The normalised form of a distribution's name (PEP 503): ``Foo.Bar_baz`` is ``foo-bar-baz``."""
    return re.sub(r"[-_.]+", "-", name).lower()


@dataclass(frozen=True, kw_only=True)
class Package:
    """One installed distribution, as its own metadata describes it."""

    name: str
    """Normalised name (PEP 503)."""
    version: str | None
    """Version, or None where the metadata has none (a half-removed installation)."""
    location: str | None
    """The folder that it is installed in."""
    requires: tuple[str, ...] = ()
    """Its requirements (``Requires-Dist``), as written."""
    requires_python: str | None = None
    """Its ``Requires-Python``, as written."""
    installer: str | None = None
    """Who installed it (``INSTALLER``): pip, uv, conda."""


@dataclass(frozen=True, kw_only=True)
class Packages(FactGroup):
    """Every distribution on the target interpreter's path.

    Where one name is installed twice, both are listed, the one that Python imports first.
    """

    group: ClassVar[str] = "packages"

    installed: tuple[Package, ...]
    """In order of name, then of the search path."""
    has_pip: bool | None = None
    """Whether the target can ``import pip``."""
    conda: tuple[str, ...] = ()
    """What conda recorded for the environment, as ``name=version=build``, in order; empty outside of conda."""

    def find(self, name: str) -> Package | None:
        """The distribution of that name which Python would import, or None."""
        wanted = canonical_name(name)
        return next((package for package in self.installed if package.name == wanted), None)

    def version(self, name: str) -> str | None:
        """The version of that distribution, or None if it is absent or has none."""
        package = self.find(name)
        return package.version if package else None
