"""Builders of the group ``libraries``: the libraries of a healthy ``tensorflow[and-cuda]==2.21.0`` with a driver.

That release does not search nvidia/cusolver/lib. The healthy job therefore has the folder on LD_LIBRARY_PATH.
"""

from dataclasses import replace
from typing import Any

from helpers.facts.base import SITE
from kdoctor.facts import FrameworkLibrary, Libraries, Library
from kdoctor.testing import healthy

SOLVER_FOLDER = f"{SITE}/nvidia/cusolver/lib"


def library(name: str, **changes: Any) -> Library:
    """One healthy library from its wheel, or libcuda from the driver."""
    return replace(next(entry for entry in healthy(Libraries).libraries if entry.name == name), **changes)


def missing(name: str, **changes: Any) -> Library:
    """The same library if the loader does not find it."""
    gone = dict.fromkeys(
        ("path", "real_path", "found_by", "version", "version_code", "built_with", "package", "package_version")
    )
    return library(name, status="missing", **{**gone, **changes})


def libraries(*changed: Library, **changes: Any) -> Libraries:
    """All ten libraries, healthy unless given."""
    given = {entry.name: entry for entry in changed}
    listed = tuple(given.get(entry.name, entry) for entry in healthy(Libraries).libraries)
    values: dict[str, Any] = {
        "libraries": listed,
        "frameworks": tuple(
            FrameworkLibrary(
                framework="TensorFlow",
                soname=item.soname or "",
                path=item.path or "",
                packages=(f"{item.package}=={item.package_version}",) if item.package else (),
            )
            for item in listed
            if item.status == "found" and item.name != "cuda"
        ),
        "driver_version": listed[0].version,
        "driver_is_compat": False if listed[0].path else None,
    }
    return healthy(Libraries, **{**values, **changes})


def no_libraries() -> Libraries:
    """A TensorFlow without CUDA."""
    return Libraries(cuda_build=False, note="this TensorFlow was built without CUDA and opens none of its libraries")


def without_wheels() -> Libraries:
    """Plain ``tensorflow`` on a machine with a driver and without CUDA. All libraries are missing."""
    return libraries(*(missing(entry.name) for entry in healthy(Libraries).libraries if entry.name != "cuda"))
