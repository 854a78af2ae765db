"""The distributions that are installed in the target environment."""

import re
from typing import ClassVar

from kdoctor.facts.base import FactGroup
from kdoctor.records import record


def canonical_name(name: str) -> str:
    """The normalised name of a distribution (PEP 503): ``Foo.Bar_baz`` is ``foo-bar-baz``."""
    return re.sub(r"[-_.]+", "-", name).lower()


@record
class Package:
    """One installed distribution, from its metadata."""

    name: str
    """Normalised name (PEP 503)."""
    version: str | None
    """Version, or None if the metadata has none (a half-removed installation)."""
    location: str | None
    requires: tuple[str, ...] = ()
    requires_python: str | None = None
    installer: str | None = None
    """The tool that installed it (``INSTALLER``): pip, uv, conda."""


@record
class PackageFault:
    """An installed package with missing or changed files, or that another file hides from Python."""

    package: str
    version: str
    files: int
    """Number of its recorded files that an import may need."""
    missing: int = 0
    """How many of them do not exist."""
    changed: int = 0
    """How many have another size than recorded and are broken libraries, are mentioned by the error of an import, or
    are another distribution's."""
    file: str
    """The first of these, relative to the folder of the installation; the path of a file that shadows the package."""
    overwritten_by: str = ""
    """The distribution whose files have taken their place."""
    shadowed: bool = False
    """Whether Python finds a file that is not the package's first."""


TENSORFLOWS = frozenset({
    "intel-tensorflow", "tensorflow", "tensorflow-aarch64", "tensorflow-cpu", "tensorflow-cpu-aws", "tensorflow-gpu",
    "tensorflow-intel", "tensorflow-macos", "tensorflow-rocm", "tf-nightly", "tf-nightly-cpu", "tf-nightly-gpu",
    "tf-nightly-intel",
})  # fmt: skip
"""Distributions that contain the folder ``tensorflow``, or require one that does."""


@record
class Packages(FactGroup):
    """Every distribution on the target interpreter's path.

    If a name is installed twice, both are listed, the one that Python imports first.
    """

    group: ClassVar[str] = "packages"

    installed: tuple[Package, ...]
    """In order of name, then of the search path."""
    has_pip: bool | None = None
    """Whether the target can ``import pip``."""
    has_uv: bool | None = None
    """Whether uv is on ``PATH``."""
    conda: tuple[str, ...] = ()
    """The packages that conda recorded, as ``name=version=build``, in order; empty outside conda."""
    files: int | None = None
    """Number of modules and libraries of TensorFlow, Keras and what they require that were looked up; None if none
    were."""
    faults: tuple[PackageFault, ...] = ()
    """What an import of these would meet: missing files, and files that Python finds first. ``python`` is the
    standard library."""

    @property
    def tensorflow(self) -> Package | None:
        """The distribution with the files of TensorFlow; ``tensorflow`` if there are several."""
        others = (package for package in self.installed if package.name in TENSORFLOWS)
        return self.find("tensorflow") or next(others, None)

    def find(self, name: str) -> Package | None:
        """The distribution of that name which Python would import, or None."""
        wanted = canonical_name(name)
        return next((package for package in self.installed if package.name == wanted), None)

    def version(self, name: str) -> str | None:
        """The version of that distribution, or None if it is missing or unknown."""
        package = self.find(name)
        return package.version if package else None
